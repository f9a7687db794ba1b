import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "bincount_of_weights"
NEEDED_ON = ("dynamo",)
ARGS = (torch.tensor([2, 0, 5, 2, 2]), torch.tensor([0.5, 1.0, -2.0, 3.0, 0.25]))


def many(i, w):
    return (
        torch.bincount(i, w),
        i.bincount(w, minlength=9),
        torch.bincount(i, i, 3),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"i": {0: "batch"}, "w": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda i, w: torch.bincount(i, w), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop", "If"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda i, w: torch.bincount(i), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.bincount, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, w: torch.bincount(i, w), ARGS, NEEDED_ON[0], rewrites=[broken])


@pytest.mark.parametrize("name", NEEDED_ON)
def test_still_needed(name):
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, name, exclude=[NAME, "bincount_to_sum"])
