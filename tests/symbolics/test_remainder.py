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
FLOATS = torch.tensor([5.3, -5.3, 7.0, -7.0, 0.0, 6.0, 1e10, -3.5e9, INF, NAN, 3.0, -0.9, 1.0, -1e-30, 4.0, -9.0])
DIVISORS = torch.tensor([3.0, 3.0, 0.1, -2.0, 5.0, -3.0, 3.0, 7.0, 2.0, 3.0, INF, INF, -0.1, 1e-20, 0.0, -0.3])
INTS = torch.tensor([5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, 16777217, -16777217, 33, 3, -3, 1, -(2**63)])
INT_DIVISORS = torch.tensor([3, 3, -2, 2, 5, -5, -3, 3, 7, 2, 3, 1, -7, 2, 1000, 100])
EXAMPLE = (FLOATS, DIVISORS, INTS, INT_DIVISORS)


class Rest(nn.Module):
    """Everything % can be asked: two tensors, a number on either side, mixed types, broadcasting, in place."""

    def forward(self, f, g, i, j):
        double, half, short, byte = f.double(), f.half(), i.clamp(-99, 99).int(), i.clamp(0, 99).to(torch.uint8)
        j32, j8 = j.int(), j.clamp(1, 9).to(torch.uint8)
        pairs = [(f, g), (g, f), (double, g), (half, g.half()), (i, j), (short, j), (short, j32), (byte, j8)]
        pairs += [(byte, j), (i.to(torch.int8), j8.to(torch.int8)), (i, g), (f, j), (j > 0, j), (i, j8 > 0)]
        pairs += [(f[:4, None], g[:3]), (i[3], j[3]), (f, g[0]), (i, g[3])]
        results = [a % b for a, b in pairs]
        results += [f % 3, f % -2.5, f % 0, g % 4, double % 0.1, double % -3, half % 2.5]
        results += [i % 3, i % -3, i % 2.5, short % -3, byte % 3, 7 % f, 7.5 % f, -7 % j, 7 % j32, -7.5 % j]
        written = f.clone()
        written %= 3
        return *results, written, i.clone().remainder_(-7), torch.remainder(i, j)


def test_matches(exporter):
    assert_same_outputs(Rest(), EXAMPLE, exporter, uses=("remainder",))


def test_matches_at_low_opset():
    assert_same_outputs(Rest(), EXAMPLE, "torchscript", opset=13, uses=("remainder",))


class Pair(nn.Module):
    def forward(self, a, b, i, j):
        return a % b, a % 0.1, a % -3, i % j, i % 7, i % -5


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


def test_integers_take_one_node(exporter):
    result = assert_same_outputs(lambda i, j: i % j, (INTS, INT_DIVISORS), exporter, uses=("remainder",))
    assert set(result.nodes) == {"Mod"}


def test_fmod_needs_no_entry(exporter):
    results = assert_same_outputs(
        lambda f, g, i, j: (torch.fmod(f, g), torch.fmod(i, j), torch.fmod(f.double(), 0.1), torch.fmod(i, 2.5)),
        EXAMPLE,
        exporter,
    )
    assert "remainder" not in {note.entry for note in results.applied}


def test_sentinel(exporter):
    @symbolic("aten::remainder", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, other: Value) -> Value:
        _, (dividend, divisor) = op.promoted(self, other)
        return op.Mod(dividend, divisor, fmod=1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda f, g: f % g, (FLOATS, DIVISORS), exporter, symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(lambda f: f % 3, torch.tensor([1e10]), exporter, exclude=["remainder"])
