import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "max_pool2d_indices_unbatched"
NEEDED_ON = ("torchscript",)
ARGS = (torch.randn(3, 8, 8),)


def many(x):
    return (
        *F.max_pool2d(x, 2, return_indices=True),
        *F.max_pool2d_with_indices(x, 3, 2, 1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic=None)


def test_applied():
    result = assert_same_outputs(lambda x: F.max_pool2d(x, 2, return_indices=True)[0], ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: F.max_pool2d(x[None], 2, return_indices=True)[1], ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.max_pool2d_with_indices, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0], args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.max_pool2d(x, 2, return_indices=True)[0], ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, opset=17)
