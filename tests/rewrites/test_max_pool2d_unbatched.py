import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "max_pool2d_unbatched"
ARGS = (torch.randn(3, 8, 8),)


def many(x):
    return (
        F.max_pool2d(x, 2),
        torch.nn.MaxPool2d(3, 2, 1, ceil_mode=True)(x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_applied():
    result = assert_same_outputs(lambda x: F.max_pool2d(x, 2), ARGS, "torchscript", uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: F.max_pool2d(x[None], 2), ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.max_pool2d, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(*args, **options):
        return args[0][:, ::2, ::2]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.max_pool2d(x, 2), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter == "torchscript":
        assert_still_needed(NAME, many, ARGS, exporter, opset=17)
    assert_still_needed(NAME, lambda x: F.max_pool2d(x.long()[None], 2), ARGS, exporter)


def test_declines_integers(exporter):
    with pytest.raises(CompatError, match="int64 cannot be pooled in onnxruntime; convert to float32 before"):
        assert_same_outputs(lambda x: F.max_pool2d(x.long()[None], 2), ARGS, exporter)
