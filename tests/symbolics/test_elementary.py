"""Elementary functions, in rows; the nodes that they take; what is declined."""

import math

import pytest
import torch
from torch_onnx_compat.symbolics.elementary import where_of_bool

from torch_onnx_compat import Verify
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

INF, NAN = math.inf, math.nan
AXIS = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF])
FLOATS = torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]])
INTEGERS = torch.tensor([[2, -3, 4], [0, 5, 1]])
MIXED = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), INTEGERS)
"""A float and an integer tensor of one shape."""

WITH_NAN = (
    torch.tensor([[1.5, -2.0, NAN, INF], [-INF, NAN, 4.0, 3.0]]),
    torch.tensor([[0.0, NAN, NAN, -INF], [2.0, 1.0, -1.0, -3.0]]),
)
WITH_ZEROS = (
    torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
    torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
)
WITH_EQUAL_INFINITIES = (
    torch.tensor([[1.5, -200.0, 0.0, INF], [-INF, 700.0, -0.0, 3.0]]),
    torch.tensor([[0.0, -201.0, 2.5, INF], [-INF, 1.0, -0.0, -3.0]]),
)


def hyperbolic(name, floats=lambda x: x, integers=lambda i: i):
    """A row: of floats, of integers, in place; `floats` and `integers` bring the inputs into the function's domain."""

    def model(x, i):
        f = getattr(torch, name)
        return f(floats(x)), getattr(integers(i), name)(), getattr(floats(x) * 1, f"{name}_")()

    inputs = (torch.tensor([[1.5, -2.0, 0.0], [0.25, -0.5, 3.0]]), torch.tensor([[2, -3, 1], [0, 4, -1]]))
    return Example(name, model, inputs, broken=lambda op, self: op.Exp(op.cast(self, torch.float32)))


def write_into_an_input(x, state):
    """As a model writes its new state into the one that it was given."""
    state.copy_(x.double().mean(1))  # another type
    total = state + 1
    state.copy_(x[:1, 0])  # broadcast
    return total, state


EXAMPLES = [
    Example(
        "angle_to_where",
        lambda x, i: (torch.angle(x), x.double().angle(), i.angle()),
        (torch.tensor([[0.0, -0.0, NAN], [INF, -INF, -2.5]]), INTEGERS),
        leaves=lambda x, i: x.abs() + i,
    ),
    Example("real", lambda x, i: (torch.real(x), x.double().real, i.real + 1), MIXED, leaves=lambda x, i: x.abs() + i),
    Example(
        "log1p_to_log",
        lambda x, i: (torch.log1p(x), torch.log1p(x * 1e-6), x.double().log1p(), torch.special.log1p(i)),
        (torch.tensor([[1e-3, -1e-6, 0.0], [0.4, -0.4, 3e-7]]), INTEGERS.abs()),
        broken=lambda input: torch.log(1 + input),
        leaves=lambda x, i: torch.log(x.abs() + i),
    ),
    Example(
        "log1p_to_log",
        lambda x: torch.log1p(x),
        (torch.tensor([-1.0, -2.0, INF, NAN, 3e38, -0.9999999, 0.6]),),
        broken=lambda input: torch.log(1 + input.clamp(-0.9)),
        claims=(),
    ),
    Example(
        "pow_to_sqrt",
        lambda x: (x**0.5, x.double().pow(0.5), torch.pow(x, -0.5)),
        (torch.tensor([[4.0, -INF, INF], [2.0, -0.0, NAN]]),),
        broken=lambda input, exponent: torch.sqrt(input.abs()),
        leaves=lambda x: (x.abs() + 1) ** 1.5,
    ),
    Example(
        "pow_of_computed_number",
        lambda x: (x ** x[0].item(), torch.pow(x.to(torch.int32), x[1].item())),
        (torch.tensor([0.5, 2.0, 3.0]),),
        broken=lambda input, exponent: torch.pow(input, 2),
        exporters=("dynamo",),
        leaves=lambda x: x**1.5,
    ),
    *(
        Example(
            f"{f.__name__}_of_short",
            lambda i, f=f: (f(i.short(), (i * 2 - 3).short()), f(i > 1, i < 4)),
            (INTEGERS,),
            leaves=lambda i, f=f: f(i.int(), i),
        )
        for f in (torch.maximum, torch.minimum)
    ),
    Example(
        "masked_fill_of_bool",
        lambda x, i: (
            (i > 0).masked_fill(x > 0, True),
            (i > 0).masked_fill(x[0] > 0, 0),
            (i > 0).masked_fill(x < 0, i[0, 0] > 5),
        ),
        MIXED,
        leaves=lambda x, i: x.masked_fill(i > 0, 2.0),
    ),
    hyperbolic("sinh"),
    hyperbolic("cosh"),
    hyperbolic("asinh"),
    hyperbolic("acosh", lambda x: x.abs() + 1.5, lambda i: i.abs() + 1),
    hyperbolic("atanh", lambda x: x.tanh() * 0.9, lambda i: i * 0),
    Example(
        "atan2_to_atan",
        lambda y, x: (torch.atan2(y, x), y.atan2(x[:, :1]), torch.atan2(y[:, :3].long(), x[:, :3])),
        (AXIS.repeat(7)[None], AXIS.repeat_interleave(7)[None]),
        broken=lambda input, other: torch.atan(input / other),
    ),
    Example(
        "sinc_to_sin",
        lambda x: (torch.sinc(x), x.double().sinc(), torch.special.sinc(x)),
        (torch.tensor([[0.5, -1.3, 0.0, 0.25], [-0.5, 2.7, -0.0, 3.4], [1.0, -2.0, 5.0, 7.0]]),),
        broken=lambda input: torch.sin(input) / input,
    ),
    Example(
        "hypot_to_sqrt",
        lambda x, y: (torch.hypot(x, y), x.hypot(y[:, :1]), torch.hypot(x, y.double())),
        (
            torch.tensor([[3.0, -1e30, 0.0, INF], [3e-30, 7.0, INF, -2.5]]),
            torch.tensor([[-4.0, 1e30, 0.0, 1.0], [4e-30, -3.0, NAN, 0.0]]),
        ),
        broken=lambda input, other: torch.sqrt(input * input + other * other),
    ),
    Example(
        "rad2deg_to_mul",
        lambda x, i: (torch.rad2deg(x), i.rad2deg(), x.double().rad2deg()),
        (FLOATS, INTEGERS),
        broken=lambda input: input * (math.pi / 180),
    ),
    Example(
        "deg2rad_to_mul",
        lambda x, i: (torch.deg2rad(x), i.deg2rad(), x.double().deg2rad()),
        (FLOATS, INTEGERS),
        broken=lambda input: input * (180 / math.pi),
    ),
    Example(
        "exp2_to_pow",
        lambda x, i: (torch.exp2(x), i.exp2(), x.double().exp2(), torch.special.exp2(x)),
        (FLOATS, INTEGERS),
        broken=lambda input: torch.exp(input),
    ),
    Example(
        "expm1_to_tanh",
        lambda x, i: (torch.expm1(x), x.double().expm1(), torch.special.expm1(i), torch.expm1(x * 1e7)),
        (torch.tensor([[1e-7, -1e-6, 1e-5, 3e-7], [-2e-7, 1e-6, 5e-6, 0.0]]), INTEGERS),
        broken=lambda input: torch.exp(input) - 1,
    ),
    *(
        Example(
            f"{f.__name__}_to_log",
            lambda x, y, f=f: (f(x, y), getattr(x, f.__name__)(y[:, :1]), f(x.double(), y.double())),
            WITH_EQUAL_INFINITIES,
            broken=lambda input, other: torch.log(torch.exp(input) + torch.exp(other)),
        )
        for f in (torch.logaddexp, torch.logaddexp2)
    ),
    Example(
        "pow",
        lambda f, i: (
            torch.pow(f, f.double() * 3),
            (i.abs() + 1) ** f,
            (i.int().abs() + 1) ** (i.abs() + 1),
            (f > 0.9) ** f,
            (i.abs() + 1)[:, :1] ** f.double(),
            (i.abs() + 1)[0, 0] ** f,
            f ** f.double()[0, 0],
        ),
        (torch.rand(2, 5) + 0.5, torch.tensor([[1, 2, 0, -1, 3], [4, 1, 2, 1, -2]])),
    ),
    Example(
        "pow",
        lambda f, i: (i.abs() + 1) ** f,
        (torch.rand(2, 5) + 0.5, torch.tensor([[1, 2, 0, -1, 3], [4, 1, 2, 1, -2]])),
        broken=lambda op, self, exponent: op.Pow(self, exponent),
        leaves=lambda f, i: (f**i, f**f, i**2, i**0.5, 2.5**i, 2**f, f**2),
        exporters=("dynamo",),
    ),
    Example(
        "float_power_to_pow",
        lambda x, i: (
            torch.float_power(x.abs(), 1.5),
            i.float_power(2),
            torch.float_power(2, x),
            x.abs().float_power(i[:, :1]),
        ),
        (FLOATS, INTEGERS),
        broken=lambda input, exponent: torch.as_tensor(input).double() * exponent,
    ),
    Example(
        "ldexp_to_mul",
        lambda x, i: (
            torch.ldexp(x, i),
            torch.ldexp(x, torch.tensor(3)),
            i.ldexp(i),
            torch.ldexp(x, x),
            x.ldexp(i.half() * 4),
        ),
        MIXED,
        broken=lambda input, other: input * other,
        leaves=lambda x, i: x * 2 ** i.abs(),
    ),
    Example(
        "addcmul_to_mul",
        lambda i, j: (
            torch.addcmul(i, i, j, value=2),
            i.addcmul(j, j),
            torch.addcmul(i.float(), i, j.float(), value=0.5),
        ),
        (INTEGERS, torch.tensor([[3, 2, 5], [7, 1, -4]])),
        broken=lambda input, tensor1, tensor2, *, value=1: input + tensor1 * tensor2,
    ),
    Example(
        "addcdiv_to_div",
        lambda x, y: (torch.addcdiv(x, x, y), x.addcdiv(x, y, value=-2.5)),
        (FLOATS, torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]])),
        broken=lambda input, tensor1, tensor2, *, value=1: input + tensor1 / tensor2,
    ),
    Example(
        "clamp_promoted",
        lambda x, i: (
            i.clamp(-1.5, 2.5),
            x.clamp(min=x.double() + 1),
            i.to(torch.int16).clamp(max=1),
            i.clip(max=i.int() - 1),
            torch.clamp(i, torch.tensor(0.5), 3),
        ),
        MIXED,
        broken=lambda input, min=None, max=None: input,
        leaves=lambda x, i: x.clamp(-1, 1) + i.clamp(0, 3) + i.clamp(min=i * 2),
    ),
    *(
        Example(
            f"{f.__name__}_to_where",
            lambda x, y, f=f: (
                f(x, y),
                getattr(x, f.__name__)(y.double()),
                f(x[:, 3:].clamp(-5, 5).long(), torch.tensor(2)),
            ),
            WITH_NAN,
            broken=broken,
        )
        for f, broken in ((torch.fmax, torch.maximum), (torch.fmin, torch.minimum))
    ),
    Example(
        "copysign_to_where",
        lambda x, y: (
            torch.copysign(x, y),
            x.copysign(-2.0),
            x.copysign(3),
            torch.copysign(y.clamp(-9, 9).long(), y),
            1 / x.copysign(y),
        ),
        WITH_ZEROS,
        broken=lambda input, other: input.abs() * torch.sign(torch.as_tensor(other)),
    ),
    Example("sgn_to_sign", lambda x, i: (x.sgn(), torch.sgn(i), x.double().sgn()), (FLOATS, INTEGERS)),
    Example(
        "sign_of_bool",
        lambda x, i: (torch.sign(i > 0), (x > 0).sign()),
        MIXED,
        leaves=lambda x, i: x.sign() + i.sign(),
    ),
    Example(
        "heaviside_to_where",
        lambda x, y: (
            torch.heaviside(x, y),
            torch.heaviside(x, torch.tensor(0.5)),
            torch.heaviside(y.clamp(-9, 9).long(), torch.tensor(7)),
        ),
        WITH_ZEROS,
        broken=lambda input, values: (input > 0).to(input.dtype),
    ),
    Example(
        "positive_to_identity",
        lambda x, i: (torch.positive(x) * 2, +i),
        MIXED,
        broken=lambda input: -input,
        leaves=lambda x, i: x + i,
    ),
    Example(
        "where_of_bool",
        lambda x, i: (
            torch.where(i > 0, i > 3, i),
            torch.where(i > 0, x, i > 2),
            torch.where(i > 0, i > 1, i < 5),
            torch.where(i > 4, x > 0, i.float()),
        ),
        MIXED,
        broken=lambda condition, *branches: where_of_bool(~condition, *branches),
        leaves=lambda x, i: torch.where(i > 0, x, i),
    ),
    Example(
        "where_of_tensor",
        lambda x, i: ((x > 0).where(i > 0, i < 4), (i > 3).where(i > 0, i), i.where(x > 0, i > 2)),
        MIXED,
        broken=lambda self, condition, other: where_of_bool(~condition, self, other),
        leaves=lambda x, i: x.where(i > 0, x + 1),
    ),
    Example(
        "copy",
        write_into_an_input,
        (torch.randn(5, 2, 3), torch.zeros(5, 3)),
        broken=lambda op, self, src, non_blocking=False: op.Expand(self, op.Shape(self)),
        leaves=lambda x, state: (x.clone(), state.to(torch.float64)),
    ),
    Example(
        "without_operator",
        lambda x: torch.nextafter(x, x + 1),
        (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]]),),
        leaves=lambda x: torch.lerp(x, x + 1, 0.5),
        declines="compute its result outside and pass it to the model as an input",
    ),
]
ROWS = {row.entry: row for row in EXAMPLES}


@pytest.mark.parametrize("name", ["sinh", "cosh", "asinh", "acosh", "atanh"])
def test_takes_one_node(name, exporter):
    x = torch.tensor([[0.5, 0.25], [0.1, 0.9]]) + (name == "acosh")
    result = assert_same_outputs(lambda x: getattr(torch, name)(x), x, exporter)
    assert set(result.nodes) == {name.capitalize()}


@pytest.mark.parametrize("name", ["sinh", "cosh", "asinh", "acosh", "atanh"])
def test_stock_names_what_it_lacks(name):
    with pytest.raises(CompatError, match=f"aten::{name}"):
        assert_same_outputs(ROWS[name].model, ROWS[name].inputs, "torchscript", exclude=[name])


@pytest.mark.parametrize(
    "name", ["ldexp_to_mul", "clamp_promoted", "sign_of_bool", "positive_to_identity", "where_of_bool"]
)
def test_takes_no_loop(name):
    result = assert_entry(name, ROWS[name].model, ROWS[name].inputs, "torchscript")
    assert "Loop" not in result.nodes


def test_bounds_of_two_types(exporter):
    """A number beside a size, and a whole number beside a fraction."""

    def model(x):
        n = x.shape[1]
        clipped = torch.clip(x, n - 2, n * 1.5), x.long().clamp(0, n * 0.5)
        return x.clamp(0.5, n), x.clamp(1, 2.5), *clipped, torch.where(x > 0, n, 0.5)

    samples = [(torch.randn(2, 9) * 9,), (torch.randn(2, 1),)]
    assert_same_outputs(model, torch.randn(2, 4) * 5, exporter, dynamic={"x": {1: "n"}}, samples=samples)


def test_pow_of_halves(exporter):
    assert_same_outputs(lambda f, i: i.abs() ** f.half(), ROWS["pow"].inputs, exporter, dynamic="batch")


def test_sgn_declines_complex_numbers():
    with pytest.raises(Declined, match="complex numbers have no operator"):
        catalogue()["sgn_to_sign"].body(torch.ones(2, dtype=torch.complex64))


def test_where_as_a_method_takes_the_condition_second(exporter):
    result = assert_same_outputs(lambda x, i: (x.where(i > 0, x * 2), (i + x).where(x > 0, i)), MIXED, exporter)
    assert "where_of_bool" not in {note.entry for note in result.applied}


def test_copy_expands_at_most_once_for_each_write():
    row = ROWS["copy"]
    assert assert_entry("copy", row.model, row.inputs, "torchscript").nodes["Expand"] in (1, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.gcd(x.long(), x.long() + 4),
        lambda x: torch.frexp(x)[0],
        lambda x: torch.polygamma(1, x.abs() + 1),
        lambda x: torch.special.ndtri(x.sigmoid()),
        lambda x: torch.special.i1(x),
    ],
)
def test_every_kind_without_operator_declines(function):
    row = ROWS["without_operator"]
    with pytest.raises(CompatError, match=row.declines):
        assert_same_outputs(function, row.inputs, "torchscript")


def test_stock_fails_without_a_reason():
    row = ROWS["without_operator"]
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(row.model, row.inputs, "torchscript", exclude=[row.entry])
    assert row.declines not in str(caught.value)


def test_near_miss_without_operator_on_dynamo():
    ROWS["without_operator"].assert_leaves_alone("dynamo")


def test_atan2_of_halves(exporter):
    y, x = AXIS.repeat(7).half(), AXIS.repeat_interleave(7).half() - 0.3
    options = {"uses": ("atan2_to_atan",), "verify": Verify(rtol=2e-3, atol=0.0)}  # one rounding
    assert_same_outputs(lambda y, x: torch.atan2(y, x), (y, x), exporter, **options)


def test_atan2_of_doubles():  # onnxruntime has no kernel for their atan
    y, x = AXIS.repeat(7).double(), AXIS.repeat_interleave(7).double() - 0.3
    found = catalogue()["atan2_to_atan"].body(y, x)
    torch.testing.assert_close(found, torch.atan2(y, x), rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.parametrize("n", [0, 3, 130, -140])
def test_ldexp_of_whole_exponents_rounds_once(n):
    x = torch.tensor([1e-38, 1.5, -3e30, 0.0])
    exact = (x.double() * 2.0**n).float()
    assert torch.equal(catalogue()["ldexp_to_mul"].body(x, torch.full((4,), n)), exact)


def test_addcmul_of_numbers_has_no_axis(exporter):
    x = torch.tensor(1.5)
    result = assert_same_outputs(lambda x: torch.addcmul(x, x, x * 2, value=3), x, exporter)
    assert result(x)[0].shape == ()


def test_powers_of_booleans(exporter):
    model = lambda x: ((x > 0) ** 2, (x > 0) ** 0.5, (x > 0) ** (x > 0.5).long())  # noqa: E731
    x = torch.tensor([[0.5, -1.0, 2.0]])
    assert_same_outputs(model, (x,), exporter)
