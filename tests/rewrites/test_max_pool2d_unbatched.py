import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "max_pool2d_unbatched"
NEEDED_ON = ("torchscript",)
ARGS = (torch.randn(3, 8, 8),)


def many(x):
    return (
        F.max_pool2d(x, 2),
        torch.nn.MaxPool2d(3, 2, 1, ceil_mode=True)(x),
    )


def test_matches(exporter):
    uses = (NAME,) if exporter in NEEDED_ON else ()
    assert_same_outputs(many, ARGS, exporter, uses=uses, dynamic=None)


def test_applied():
    result = assert_same_outputs(lambda x: F.max_pool2d(x, 2), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: F.max_pool2d(x[None], 2), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.max_pool2d, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0][:, ::2, ::2]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.max_pool2d(x, 2), ARGS, NEEDED_ON[0], rewrites=[broken])


@pytest.mark.parametrize("name", NEEDED_ON)
def test_still_needed(name):
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, name, exclude=[NAME], opset=17)


def test_declines_integers(exporter):
    with pytest.raises(CompatError, match="int64 cannot be pooled in onnxruntime; convert to float32 before"):
        assert_same_outputs(lambda x: F.max_pool2d(x.long()[None], 2), ARGS, exporter)
