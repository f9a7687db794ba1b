import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "unfold_of_batch"
X = torch.randn(3, 7, 6)


def many(x):
    return F.unfold(x, 3), nn.Unfold((3, 2), (2, 1), (1, 2), (2, 3))(x), F.unfold(x, 2, stride=2)


def test_matches(exporter):
    assert_same_outputs(many, (X,), exporter, dynamic={"x": {1: "height"}}, uses=(NAME,))


def test_a_batch_is_left_alone():
    result = assert_same_outputs(lambda x: F.unfold(x, 3), (X[None],), "torchscript", dynamic="batch")
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(F.unfold, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, kernel_size, dilation=1, padding=0, stride=1):
        return F.unfold(input[None], kernel_size, dilation, padding, stride)[0].flip(0)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.unfold(x, 3), (X,), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match="Pads has incorrect number of values"):
        assert_same_outputs(lambda x: F.unfold(x, 3), (X,), exporter, exclude=[NAME])
