import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "floordiv"
X = torch.randn(6, 3)


def padded(x):
    """Rows filled up to a multiple of four."""
    missing = -(-x.shape[0] // 4) * 4 - x.shape[0]
    return F.pad(x, (0, 0, 0, missing)), x.new_zeros((1 - x.shape[0]) // -3 + 2)


def test_matches():
    assert_entry(NAME, padded, X, "dynamo", dynamic="batch", verify=True)


def test_sizes_keep_one_node():
    result = assert_same_outputs(lambda x: x[: (x.shape[0] + 3) // 2], X, "dynamo", dynamic="batch")
    assert NAME not in {note.entry for note in result.applied}
    assert not set(result.nodes) & {"Less", "Sign"}


def test_torchscript_has_another():
    result = assert_same_outputs(padded, X, "torchscript", dynamic="batch")
    assert "floor_divide" in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("_operator::floordiv", name=NAME, needed_on=("dynamo",), registry=None)
    def broken(op, a, b):
        return op.Div(a, op.cast(b, torch.int64))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(padded, X, "dynamo", dynamic="batch", symbolics=[broken])


def test_still_needed():
    assert_still_needed(NAME, padded, X, "dynamo", dynamic="batch")
