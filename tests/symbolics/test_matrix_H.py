import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "matrix_H"
NEEDED_ON = ("torchscript",)
ARGS = (torch.randn(2, 3, 4),)


def many(x):
    return (
        x[0].H,
        x[0].H + 1,
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: x[0].H, ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x.transpose(1, 2), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::matrix_H", name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(op, self):
        return op.Identity(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x[0].H, ARGS, NEEDED_ON[0], symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
