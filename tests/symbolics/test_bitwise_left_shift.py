import pytest
import torch

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "bitwise_left_shift"
NEEDED_ON = ("dynamo",)
ARGS = (
    torch.tensor([[0, 9, 200], [25, 255, 128]], dtype=torch.uint8),
    torch.tensor([[0, 1, 3], [9, 1, 7]], dtype=torch.uint8),
)


def many(x, y):
    return (
        torch.bitwise_left_shift(x, y),
        x.bitwise_left_shift(2),
        torch.bitwise_left_shift(x, 1),
        torch.bitwise_left_shift(x, 11),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "y": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, y: torch.bitwise_left_shift(x, y), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, y: torch.bitwise_left_shift(x.int(), y.int()), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::bitwise_left_shift", name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(op, self, other):
        return op.Identity(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.bitwise_left_shift(x, y), ARGS, NEEDED_ON[0], symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
