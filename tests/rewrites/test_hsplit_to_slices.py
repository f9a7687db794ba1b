import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "hsplit_to_slices"
NEEDED_ON = ("torchscript",)
ARGS = (torch.arange(48.0).reshape(2, 4, 6),)


def many(x):
    return (
        *torch.hsplit(x, 2),
        *x.hsplit((1, 3)),
        *x[0, 0].hsplit(3),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: torch.hsplit(x, 2)[1], ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x.split(2, 1)[0], ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.hsplit, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0][:, :2], args[0][:, :2]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.hsplit(x, 2)[1], ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
