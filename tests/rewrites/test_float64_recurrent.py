import pytest
import torch
from torch import nn

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "float64_recurrent"
REASON = "cast the layer and what it gets to float32"
X = torch.randn(4, 2, 3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_declines(kind, exporter):
    with pytest.raises(CompatError, match=REASON):
        assert_same_outputs(kind(3, 4).double(), X.double(), exporter)


def test_float32_is_left_alone(exporter):
    result = assert_same_outputs(nn.GRU(3, 4), X, exporter)
    assert not result.declined


def test_still_needed():
    with pytest.raises(CompatError) as caught:
        assert_same_outputs(nn.LSTM(3, 4).double(), X.double(), "torchscript", exclude=[NAME])
    assert REASON not in str(caught.value)
