import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "bitwise_and_to_bits"
NEEDED_ON = ("torchscript",)
OPSETS = {"torchscript": 17, "dynamo": 18}
ARGS = (
    torch.tensor([[2, -3, 4], [99, -(2**62) - 5, 2**62 + 9]]),
    torch.tensor([[7, -6, 1], [-(2**63), 1, 2**62 + 12]]),
)


def many(i, j):
    return (
        torch.bitwise_and(i, j),
        i & j,
        i & 6,
        -5 & i,
        i.int() & j.to(torch.int8),
        (i > 0) & j,
        i.clamp(0, 99).byte() & 15,
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, opset=OPSETS[exporter], uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    assert_same_outputs(many, ARGS, exporter, opset=OPSETS[exporter], dynamic="batch")


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_equals_eager(a, b):
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        x, y = torch.tensor([a, b]).to(dtype), torch.tensor([b, b]).to(dtype)
        assert torch.equal(catalogue()[NAME].body(x, y), x & y)


def test_booleans_are_left_alone(exporter):
    result = assert_same_outputs(lambda i, j: (i > 0) & (j > 0), ARGS, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.bitwise_and, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] + args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: torch.bitwise_and(i, j), ARGS, "torchscript", opset=17, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, opset=OPSETS[exporter])
