import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "amax"
NEEDED_ON = ("dynamo",)
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        x.amax(),
        i.amax((), True),
        *torch.aminmax(x),
        torch.amax(x, 1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "i": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, i: x.amax(), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, i: x.amax(1), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::amax", name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(op, self, dim=None, keepdim=False):
        return op.ReduceMean(self, keepdims=0)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.amax(), ARGS, NEEDED_ON[0], symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
