"""Questions about numbers, in rows: infinities, NaN, zeros of both signs, integers and booleans."""

import operator

import pytest
import torch
from torch_onnx_compat.symbolics.predicates import all_of_numbers, any_of_numbers, isclose_to_less, isin_to_equal

from torch_onnx_compat.testing import Example, assert_same_outputs

INF, NAN = float("inf"), float("nan")
INTEGERS = torch.tensor([[2, -3, 4], [0, 5, 1]])
ODD = torch.tensor([[1.5, INF, NAN], [0.0, 5.0, 1.0]])
SIGNED = torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]])
OTHERS = torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]])
FLOATS = torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]])


def is_infinite(input):
    """Whichever the sign."""
    return input.double().abs() == INF


def reduction(name, reduce, broken):
    """A row of all or any, whose wrong body is the other one."""
    return Example(
        name,
        lambda x, i: (
            reduce(x),
            reduce(x, 1),
            reduce(x > 0, (0, 1)),
            reduce(i, 0, True),
            reduce(x.unsqueeze(0), (0, -1), True),
            reduce(i.abs().byte(), 1),
        ),
        (FLOATS, INTEGERS),
        broken=broken,
    )


TENTHS = torch.tensor([[0.7, 0.1, -0.3], [0.6997, 0.7007, 70000.0]]).half()

EXAMPLES = [
    *(
        Example(
            f"{compare.__name__}_of_halves",
            lambda x, b, compare=compare: (compare(x, 0.7), compare(b, 0.1), compare(x, -0.3), compare(x, 70_000)),
            (TENTHS, TENTHS.bfloat16()),
            leaves=lambda x, b, compare=compare: (compare(x, 0.5), compare(x.float(), 0.7), compare(x, b.half())),
            broken=lambda input, other, compare=compare: ~compare(input.float(), other),
        )
        for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
    ),
    Example(
        "isreal_of_reals",
        lambda x, i: (torch.isreal(x), i.isreal()),
        (SIGNED, INTEGERS),
        broken=lambda input: input == input,
    ),
    *(
        Example(
            f"{compare.__name__}_of_bool",
            lambda x, i, compare=compare: (
                compare(x > 0, i[:, :1] > 0),
                compare(x > 0, True),
                getattr(x > 0, compare.__name__)(i[:, 1:2] > 1),
            ),
            (FLOATS, INTEGERS),
            leaves=lambda x, i, compare=compare: compare(x, i[:, :1]),
        )
        for compare in (operator.lt, operator.le, operator.gt, operator.ge)
    ),
    Example(
        "isfinite_of_integers",
        lambda i, x: (i.isfinite(), torch.isfinite(i.int()), torch.isfinite(x), torch.isfinite(i > 2)),
        (INTEGERS, ODD),
        broken=lambda input: input != 0,
    ),
    Example(
        "isnan_of_integers",
        lambda i, x: (i.isnan(), torch.isnan(i.int()), torch.isnan(x), torch.isnan(i > 2), torch.isinf(i)),
        (INTEGERS, ODD),
        broken=lambda input: input == 0,
    ),
    Example(
        "isposinf_to_equal",
        lambda x, y: (torch.isposinf(x), y.double().isposinf(), y.clamp(-9, 9).long().isposinf()),
        (SIGNED, OTHERS),
        broken=is_infinite,
    ),
    Example(
        "isneginf_to_equal",
        lambda x, y: (torch.isneginf(x), y.double().isneginf(), y.clamp(-9, 9).long().isneginf()),
        (SIGNED, OTHERS),
        broken=is_infinite,
    ),
    Example(
        "signbit_to_less",
        lambda x, i: (torch.signbit(x), i.signbit(), x.double().signbit()),
        (torch.tensor([[1.5, -2.0, 0.0, -0.0], [-INF, INF, -1.0, 3.0]]), INTEGERS),
        broken=lambda input: input < 0,
    ),
    Example(
        "isclose_to_less",
        lambda x, y: (
            torch.isclose(x, y),
            x.isclose(y, rtol=0.1),
            torch.isclose(x, y, atol=0.2, equal_nan=True),
            torch.isclose(x[:, 1:2].clamp(-9, 9).long(), y[:, 1:2].long()),
        ),
        (
            torch.tensor([[1.5, -2.0, NAN, INF], [-INF, 7.0, INF, 3.0]]),
            torch.tensor([[1.5, -2.1, NAN, INF], [-INF, 7.00001, -INF, INF]]),
        ),
        broken=lambda input, other, rtol=1e-5, atol=1e-8, equal_nan=False: isclose_to_less(input, other, rtol, atol),
    ),
    Example(
        "isin_to_equal",
        lambda x: (
            torch.isin(x, torch.tensor([1, -3, 4])),
            torch.isin(x, x[0], invert=True),
            torch.isin(x.float() / 2, x),
            torch.isin(x, torch.tensor([1])),
            torch.isin(x, 3),
            torch.isin(3, x),
            torch.isin(x, 3, invert=True),
        ),
        (torch.randint(-4, 5, (3, 4)),),
        samples=[(torch.randint(-4, 5, (6, 4)),)],
        broken=lambda elements, test_elements, **options: isin_to_equal(elements, test_elements),
        leaves=lambda x: x == 3,
    ),
    reduction("all_of_numbers", torch.all, any_of_numbers),
    reduction("any_of_numbers", torch.any, all_of_numbers),
]


def test_isin_compares(exporter):
    x = torch.randint(-4, 5, (3, 4))
    result = assert_same_outputs(lambda x: torch.isin(x, torch.tensor([1, -3])), x, exporter, uses=("isin_to_equal",))
    assert "Equal" in result.nodes


@pytest.mark.parametrize(
    ("x", "among"),
    [
        (torch.tensor([1.0, NAN, 2.0]), torch.tensor([NAN, 2.0])),
        (torch.ones(0), torch.ones(2)),
        (torch.ones(2, 2), torch.ones(0)),
        (2, torch.arange(4)),
    ],
    ids=["nan", "nothing", "in nothing", "number"],
)
def test_isin_equals_eager(x, among):
    assert torch.equal(isin_to_equal(x, among), torch.isin(x, among))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.uint8])
def test_truth_of_a_number(dtype):
    for number in (0, 1):
        x = torch.tensor(number, dtype=dtype)
        assert torch.equal(all_of_numbers(x, 0), torch.all(x, 0))
        assert torch.equal(any_of_numbers(x, -1, True), torch.any(x, -1, True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_beside_sizes_and_tensors(dtype, exporter):
    """Each is rounded to a half first: a size, a fraction of one, a float32 without axes, integers."""

    def model(x, i):
        n = x.shape[0]
        tenth = x.float().sum() * 0 + 0.1
        return x > n * 0.1, x == n + 2043, n * 0.1 <= x, x < tenth, x.ne(i), i >= x

    values = [
        (torch.full((rows, 3), v, dtype=dtype), torch.tensor([2049, 2048, 1])) for rows in (2, 7, 6) for v in SPLIT
    ]
    assert_same_outputs(model, values[0], exporter, dynamic={"x": {0: "rows"}}, samples=values)


SPLIT = (0.7, 0.6, 0.2, 0.1, 2048.0, 2050.0, 1.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_decide_as_in_eager(dtype, exporter):
    """A threshold that no half is: in a branch, in a mask, and in torch.where."""

    def model(x):
        x = x * 1.5 if x.max() > 0.7 else x
        return torch.where(x >= 0.1, x, 0), x.masked_fill(x > 0.3, 1), x[:, 0] != 0.2

    values = [torch.full((2, 3), value, dtype=dtype) for value in (0.7, 0.1, 0.3, 0.2, 0.8, -0.1)]
    assert_same_outputs(model, values[0], exporter, dynamic="batch", samples=[(value,) for value in values])
