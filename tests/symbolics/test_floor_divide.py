import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat import Ops, Value, export_compat, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

INF, NAN = float("inf"), float("nan")
FLOATS = torch.tensor([5.3, -5.3, 7.0, -7.0, 0.0, 6.0, 1e10, -3.5e9, INF, NAN, 3.0, 0.9, 1.0, -1e-30, 4.0, -9.0])
FLOAT_DIVISORS = torch.tensor([3.0, 3.0, 0.1, -2.0, 5.0, -3.0, 3.0, 7.0, 2.0, 3.0, 1e9, 0.1, -0.1, 5.0, 0.0, -0.3])
INTS = torch.tensor([5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, 16777217, -16777217, 33, 3, -3, 1, -(2**63)])
INT_DIVISORS = torch.tensor([3, 3, -2, 2, 5, -5, -3, 3, 7, 2, 3, 1, -7, 2, 1000, 100])


class Floor(nn.Module):
    """Everything // can be asked: two tensors, a number on either side, mixed types, broadcasting, in place."""

    def forward(self, f, g, i, j):
        double, half, short, byte = f.double(), f[:6].half(), i.clamp(-99, 99).int(), i.clamp(0, 99).to(torch.uint8)
        j32, j8 = j.int(), j.clamp(1, 9).to(torch.uint8)
        pairs = [(f, g), (g, f), (double, g), (half, g[:6].half()), (i, j), (short, j), (short, j32), (byte, j8)]
        pairs += [(byte, j), (i.to(torch.int8), j8.to(torch.int8)), (i, g), (f, j), (j > 0, j), (i, j8 > 0)]
        pairs += [(f[:4, None], g[:3]), (i[3], j[3]), (f, g[0]), (i, g[3])]
        results = [a // b for a, b in pairs]
        results += [f // 3, f // -2.5, f // 0, g // 4, double // 0.1, double // -3, half // 2.5]
        results += [i // 3, i // -3, i // 4, i // 2.5, short // -3, byte // 3, 7 // f, 7 // j, 7 // j32]
        written = f.clone()
        written //= 3
        return *results, written, i.clone().floor_divide_(-7), torch.floor_divide(i, j)


EXAMPLE = (FLOATS, FLOAT_DIVISORS, INTS, INT_DIVISORS)


def test_matches(exporter):
    assert_same_outputs(Floor(), EXAMPLE, exporter, uses=("floor_divide",))


def test_matches_at_low_opset():
    assert_same_outputs(Floor(), EXAMPLE, "torchscript", opset=13, uses=("floor_divide",))


class Pair(nn.Module):
    def forward(self, a, b, i, j):
        return a // b, a // 0.1, a // -3, i // j, i // 7, i // -5


@pytest.fixture(scope="module", params=EXPORTERS)
def session(request):
    example = (torch.ones(1), torch.ones(1), torch.ones(1, dtype=torch.int64), torch.ones(1, dtype=torch.int64))
    return export_compat(Pair(), example, exporter=request.param).session()


@given(
    st.floats(width=32, allow_subnormal=False),
    st.floats(width=32, allow_subnormal=False),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
)
@settings(max_examples=400, deadline=None)
def test_equals_torch_on_any_pair(session, a, b, i, j):
    assume(j not in (0, -1))
    tensors = (torch.tensor([a]), torch.tensor([b]), torch.tensor([i]), torch.tensor([j]))
    found = session.run(None, {n.name: t.numpy() for n, t in zip(session.get_inputs(), tensors, strict=True)})
    for one, other in zip(found, Pair()(*tensors), strict=True):
        np.testing.assert_array_equal(one, other.numpy())


class Halve(nn.Module):
    def forward(self, x):
        return x[:, : x.shape[1] // 2], x[:, : 3 * x.shape[1] // 4]


def test_sizes_keep_a_single_division():
    result = assert_same_outputs(
        Halve(), torch.rand(2, 8), "torchscript", dynamic={"x": {1: "n"}}, uses=("floor_divide",)
    )
    assert result.nodes["Div"] == 2
    assert not result.nodes.keys() & {"Mod", "Where", "Cast", "Greater"}


def test_power_of_two_takes_two_nodes():
    result = assert_same_outputs(lambda x: x // 2.0, torch.tensor([5.0, -5.0]), "torchscript", uses=("floor_divide",))
    assert set(result.nodes) - {"Constant"} == {"Div", "Floor"}


def test_plain_division_is_left_alone(exporter):
    result = assert_same_outputs(lambda x, y: x / y, (torch.rand(3), torch.rand(3)), exporter)
    assert not result.applied
    assert set(result.nodes) == {"Div"}


def test_sentinel(exporter):
    @symbolic("aten::floor_divide", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, other: Value) -> Value:
        _, values = op.promoted(self, other)
        return op.Div(*values)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: i // j, (INTS[:8], INT_DIVISORS[:8]), exporter, symbolics=[broken])


STILL_NEEDED = {"torchscript": (INTS[:8], INT_DIVISORS[:8]), "dynamo": (torch.tensor([7.0]), torch.tensor([0.1]))}


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(lambda a, b: a // b, STILL_NEEDED[exporter], exporter, exclude=["floor_divide"])
