import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "mT"
X = torch.randn(2, 3, 4)


def many(x):
    return x.mT, x.mT + 1, x[0].mT, x[:, None].mT, (x > 0).mT


def test_matches(exporter):
    assert_entry(NAME, many, (X,), exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: x.mT, (X,), "torchscript", uses=(NAME,))
    assert set(result.nodes) == {"Transpose"}


def test_transpose_is_left_alone():
    result = assert_same_outputs(lambda x: x.transpose(1, 2), (X,), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::mT", name=NAME, needed_on=("torchscript",), registry=None)
    def broken(op, self):
        return op.Identity(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.mT, (X,), "torchscript", symbolics=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="aten::mT"):
        assert_same_outputs(many, (X,), "torchscript", exclude=[NAME])
