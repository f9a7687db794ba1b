"""A Pad by zero before a MaxPool keeps its zeros in onnxruntime."""

import numpy as np
import onnxruntime
import pytest
import torch
from packaging.version import Version
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs


class Pooled(nn.Module):
    """As ResNetV2 of Big Transfer begins: zeros around, then the greatest of nine."""

    def __init__(self, twice=False):
        super().__init__()
        self.pad, self.twice = nn.ConstantPad2d(1, 0.0), twice

    def forward(self, x):
        x = self.pad(x)
        pooled = F.max_pool2d(x, 3, 2)
        return (pooled, F.max_pool2d(x, 2, 2), x * 2) if self.twice else pooled


NEGATIVE = -torch.rand(1, 2, 6, 8) - 1


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("opset", [11, 13, 20])
def test_the_border_is_zero(exporter, opset, twice):
    result = assert_same_outputs(Pooled(twice), NEGATIVE, exporter, opset=opset, dynamic="batch")
    assert result.nodes["Pad"] == 1


def test_the_number_is_the_same(exporter):
    result = assert_same_outputs(Pooled(), NEGATIVE, exporter)
    (zero,) = [i for i in result.model_proto.graph.initializer if "zero" in i.name]
    assert np.frombuffer(zero.raw_data, np.float32)[0] == 0


def test_other_padding_is_left_alone(exporter):
    result = assert_same_outputs(lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-3.0), 3), NEGATIVE, exporter)
    assert not any("zero" in i.name for i in result.model_proto.graph.initializer)


@pytest.mark.skipif(Version(onnxruntime.__version__) >= Version("1.32"), reason="mended in onnxruntime 1.32")
def test_onnxruntime_needs_it(exporter, monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.finish.keep_zeros", lambda model: None)
    with pytest.raises(VerificationError):
        assert_same_outputs(Pooled(), NEGATIVE, exporter)
