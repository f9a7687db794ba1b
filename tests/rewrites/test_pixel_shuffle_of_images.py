import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "pixel_shuffle_of_images"
X = torch.randn(2, 2, 12, 3, 5)


def many(x):
    return F.pixel_shuffle(x, 2), nn.PixelShuffle(2)(x[0, 0]), F.pixel_shuffle(x[None], 2)


@pytest.mark.parametrize("dynamic", [None, "batch"])
def test_matches(dynamic):
    assert_same_outputs(many, (X,), "torchscript", dynamic=dynamic, uses=(NAME,))


def test_matches_with_dynamo():
    assert not assert_same_outputs(many, (X,), "dynamo", dynamic="batch").applied


def test_a_batch_of_images_is_left_alone():
    result = assert_same_outputs(nn.PixelShuffle(2), (X[0],), "torchscript", dynamic="batch")
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(torch.pixel_shuffle, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, factor):
        return torch.pixel_shuffle(input.flip(-3).flatten(0, 1), factor).reshape(F.pixel_shuffle(X, 2).shape)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.pixel_shuffle(x, 2), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="only support 4d input"):
        assert_same_outputs(lambda x: F.pixel_shuffle(x, 2), (X,), "torchscript", exclude=[NAME])
