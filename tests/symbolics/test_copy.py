import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "copy"
ARGS = (torch.randn(5, 2, 3), torch.zeros(5, 3))


def into_an_input(x, kept):
    """As a model writes its new state into the one that it was given."""
    kept.copy_(x.double().mean(1))  # another type
    total = kept + 1
    kept.copy_(x[:1, 0])  # broadcast
    return total, kept


def test_matches(exporter):
    assert_entry(NAME, into_an_input, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, into_an_input, ARGS, exporter, dynamic="batch")


def test_applied():
    result = assert_entry(NAME, into_an_input, ARGS, "torchscript")
    assert result.nodes["Expand"] == 2


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, kept: (x.clone(), kept.to(torch.float64)), ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @symbolic("aten::copy", name=NAME, needed_on=("torchscript", "dynamo"), registry=None)
    def broken(op: Ops, self: Value, src: Value, non_blocking: bool = False) -> Value:
        return op.Expand(op.cast(self, op.dtype(self)), op.Shape(self))

    with pytest.raises(VerificationError):
        assert_same_outputs(into_an_input, ARGS, exporter, symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, into_an_input, ARGS, exporter)
