import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "bincount_to_sum"
NEEDED_ON = ("torchscript",)
ARGS = (torch.tensor([2, 0, 5, 2, 2]), torch.tensor([0.5, 1.0, -2.0, 3.0, 0.25]))


def many(i, w):
    return (
        torch.bincount(i),
        i.bincount(minlength=9),
        torch.bincount(i.int(), minlength=2),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"i": {0: "batch"}, "w": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda i, w: torch.bincount(i), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop", "If"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda i, w: i + w, ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.bincount, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, w: torch.bincount(i), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
