"""Ranges, numbers and random numbers, in rows; what is declined, and what is left to torch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import Verify
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.ops import ONNX_TYPES
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

EXACTLY = Verify(rtol=0.0, atol=0.0)
DYNAMIC = {"x": {0: "rows", 1: "columns"}}
DOUBLES = torch.linspace(-3, 3, 7, dtype=torch.float64)
RANDOM = "draw them outside and pass them to the model as an input"
LEVELS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])


def count_in_float32(op, start, end=None, step=1, dtype=None):
    start, end = (0, start) if end is None else (start, end)
    return op.Range(*(op.cast(op.cast(bound, torch.float32), torch.float64) for bound in (start, end, step)))


def look_up_backwards(x):
    return F.embedding(torch.arange(x.shape[0] - 1, -1, -1), x)


def from_sizes(x):
    rows, columns = x.shape
    return (
        x[torch.arange(rows - 1, -1, -1)],
        x.index_select(0, torch.arange(start=-rows + rows, end=rows)),
        x[:, torch.arange(columns - 1, -1, -2)],
        torch.arange(rows, 3 * rows + 1, 2, dtype=torch.int64),
        torch.arange(rows // 2, end=rows, step=1),
    )


class Numbers(nn.Module):
    """Python numbers beside tensors of every type that has numbers of its own."""

    def forward(self, x):
        half, integers = x.half(), x.long()
        results = [x * 0.1, 0.1 + x, x / 0.1, x - 1 / 3, 1 / 3 - x, torch.fmod(x, 0.1), x > 0.1]
        results += [torch.where(x > 0, x, 0.1), half * 0.5, x.float() * 0.1, integers * 0.5, integers + (2**40 + 1)]
        results += [x + torch.scalar_tensor(0.1), x + torch.scalar_tensor(0.1, dtype=torch.float64)]
        return (*results, integers.int() * 3, x * 10**17)


def round_to_float32(op, s, dtype=None):
    if dtype != ONNX_TYPES[torch.float64]:
        return NotImplemented
    return op.constant(float(torch.tensor(op.number(s), dtype=torch.float32)), torch.float64)


EXAMPLES = [
    Example(
        "arange",
        lambda x: (
            torch.arange(0, x.shape[1], 1.3, dtype=torch.float64),
            torch.arange(x.shape[0], dtype=torch.float64),
            torch.arange(0.1, x.shape[0], dtype=torch.float64),
        ),
        (torch.randn(3, 13),),  # 10 steps of 1.3, and 11 of 1.2999999523
        broken=count_in_float32,
        dynamic=DYNAMIC,
        samples=[(torch.randn(2, 26),)],
        leaves=lambda x: torch.arange(x.shape[0]),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "arange_from_zero",
        look_up_backwards,
        (torch.randn(3, 4),),
        broken=lambda *args, **options: torch.arange(*args, **options).flip(0),
        dynamic=DYNAMIC,
        leaves=lambda x: (
            torch.arange(x.shape[0]),
            torch.arange(1, x.shape[0]),
            torch.arange(5, 0, -1) + x.shape[0],
        ),
    ),
    Example(
        "arange_of_fractions",
        lambda x: (
            x.index_select(1, torch.arange(0, x.shape[1], 1.3).long()),
            torch.arange(0.5, x.shape[0], dtype=torch.float32),
            torch.arange(3, 0, -0.1) + x[0, 0],
            torch.arange(end=x.shape[1], start=2, step=0.1).floor(),
        ),
        (torch.randn(3, 41),),
        broken=lambda *args, **options: torch.arange(*args, **{**options, "dtype": torch.float64}).float() * 1.01,
        dynamic=DYNAMIC,
        samples=[(torch.randn(2, 393),)],
        leaves=lambda x: (
            torch.arange(x.shape[1], dtype=torch.float32),
            torch.arange(0.0, x.shape[0], 2.0),
            torch.arange(x.shape[0]),
            torch.arange(0, x.shape[0], 0.5, dtype=torch.float64),
        ),
    ),
    Example(
        "eye_of_narrow_type",
        lambda x: (
            ~torch.eye(x.shape[0], dtype=torch.bool),
            torch.eye(x.shape[0], 3, dtype=torch.uint8),
            torch.eye(n=2, m=x.shape[0], dtype=torch.int8),
            torch.eye(x.shape[0], dtype=torch.int16),
            torch.eye(x.shape[0], dtype=torch.bfloat16).float(),
        ),
        (torch.randn(3, 4),),
        broken=lambda n, m=None, dtype=None: torch.zeros(n, m or n, dtype=dtype),
        leaves=lambda x: (torch.eye(x.shape[0]), torch.eye(x.shape[0], dtype=torch.int64)),
    ),
    Example(
        "full_of_whole_number",
        lambda x: (
            torch.full((x.shape[0],), -1),
            torch.full((2, x.shape[1]), True),
            torch.full(size=(3,), fill_value=7),
            torch.full((2,), x.shape[1]),
            torch.full((2,), x.shape[1] > 3),
        ),
        (torch.randn(3, 4),),
        broken=lambda size, fill_value, **options: torch.full(size, fill_value + 1, dtype=torch.int64, **options),
        leaves=lambda x: torch.full((x.shape[0],), 1.5),
    ),
    Example(
        "scalar_tensor",
        Numbers(),
        (DOUBLES,),
        broken=round_to_float32,
        dynamic=None,
        options={"verify": EXACTLY},
    ),
    Example(
        "random_to_input",
        lambda x: x + torch.rand_like(x),
        (LEVELS,),
        dynamic=None,
        declines=RANDOM,
        leaves=lambda x: x + torch.zeros_like(x),
    ),
    *(
        Example(
            name,
            lambda x, f=f: (
                *(f(-1, 1, x.shape[0]), f(-2.0, 0.5, x.shape[0] + 4, dtype=torch.float64), f(0.3, 2, 1)),
                *(f(1 / x.shape[0] - 1, 1 - 1 / x.shape[0], x.shape[0]), f(0, x.shape[0] - 1, steps=x.shape[0])),
                f(0.5, float(x.shape[0]), 5),
            ),
            (LEVELS,),
            samples=[(torch.rand(n, 3),) for n in (1, 2, 7)],
            options={"control_flow": True},  # float() of a size is a number that the file computes
            leaves=lambda x, f=f: x + torch.linspace(0, 1, 3),
        )
        for name, f in (("linspace_to_arange", torch.linspace), ("logspace_to_pow", torch.logspace))
    ),
]


@pytest.mark.parametrize("row", EXAMPLES[1:3], ids=lambda row: row.entry)
def test_leaves_other_ranges_alone_on_dynamo(row):
    row.assert_leaves_alone("dynamo")


def test_ranges_from_sizes(exporter):
    assert_entry("arange_from_zero", from_sizes, torch.randn(3, 4), exporter, dynamic=DYNAMIC)


def test_a_fixed_range_is_a_constant(exporter):
    result = assert_same_outputs(
        lambda x: x[:, :30] + torch.arange(0, 3, 0.1),
        torch.randn(3, 41),
        exporter,
        dynamic="rows",
        uses=("arange_of_fractions",),
    )
    assert "Range" not in result.nodes


def test_a_number_leaves_one_node():
    result = assert_same_outputs(lambda x: x * 0.1, DOUBLES, "dynamo", uses=("scalar_tensor",))
    assert set(result.nodes) - {"Constant"} == {"Mul"}


def test_scalar_tensor_declines_sizes(exporter):
    model = lambda x: x * torch.scalar_tensor(x.shape[0], dtype=torch.float64)  # noqa: E731
    result = assert_same_outputs(model, DOUBLES, exporter, dynamic="batch", include=["scalar_tensor"])
    assert reasons(result) == ["the number must be known, got a tensor"]


def test_scalar_tensor_declines_no_dtype():
    result = assert_same_outputs(lambda x: x * torch.scalar_tensor(0.5), DOUBLES, "dynamo")
    assert reasons(result) == ["dtype must be one of ONNX's, got None"]


def reasons(result):
    return [note.reason for note in result.declined if note.entry == "scalar_tensor"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x + torch.rand_like(x),
        lambda x: torch.multinomial(x.exp(), 2),
        lambda x: F.gumbel_softmax(x),
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: x + torch.randn(3),
        lambda x: x.clone().uniform_(),
        lambda x: torch.normal(x, x.abs()),
    ],
)
def test_every_draw_is_refused(draw):
    with pytest.raises(CompatError, match=RANDOM):
        assert_same_outputs(draw, LEVELS, "torchscript")


def test_a_draw_is_refused_on_dynamo():
    with pytest.raises(CompatError, match=RANDOM):
        assert_same_outputs(lambda x: x + torch.rand_like(x), LEVELS, "dynamo")


def test_a_draw_is_written_without_verification():
    result = assert_same_outputs(lambda x: x + torch.rand_like(x), LEVELS, "torchscript", verify=False)
    assert "RandomUniformLike" in result.nodes


def test_numbers_of_bfloat16_are_left_to_torch():
    x = torch.randn(3, 2).bfloat16()
    model = lambda x: x.index_fill(0, torch.tensor([1]), 3.3)  # noqa: E731
    result = assert_same_outputs(model, x, "dynamo", dynamic={"x": {0: "rows"}})
    assert "scalar_tensor" not in {note.entry for note in result.applied}
