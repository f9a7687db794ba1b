import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import of_call
from torch_onnx_compat.testing import assert_same_outputs

USES = ("rnn_tanh_of_any_length",)
DYNAMIC = {"input": {0: "batch", 1: "length"}}


def layer(**options):
    return nn.RNN(3, 4, batch_first=True, nonlinearity="tanh", **options)


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = layer(bidirectional=True, num_layers=2)
        self.last = nn.RNN(8, 4, bias=False, nonlinearity="tanh")

    def forward(self, input):
        output, state = self.first(input)
        return self.last(output.transpose(0, 1), state[:1].transpose(1, 2).transpose(1, 2))[0], state


def test_matches():
    result = assert_same_outputs(Many(), torch.randn(2, 5, 3), "dynamo", dynamic=DYNAMIC, uses=USES)
    assert result.nodes["RNN"] == 3


def test_applied_where_the_length_is_fixed():
    result = assert_same_outputs(layer(), torch.randn(2, 5, 3), "dynamo", dynamic="batch", uses=USES)
    assert result.nodes["RNN"] == 1


def test_torchscript_is_left_alone():
    result = assert_same_outputs(layer(), torch.randn(2, 5, 3), "torchscript", dynamic=DYNAMIC)
    assert not result.applied


def test_sentinel():
    @rewrite(torch.rnn_tanh, name="rnn_tanh_of_any_length", needed_on=("dynamo",), registry=None)
    def broken(*args):
        output, state = of_call("Tanh", args, packed=False)
        return output.flip(1), state

    with pytest.raises(VerificationError):
        assert_same_outputs(layer(), torch.randn(2, 5, 3), "dynamo", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="fixed at 5"):
        assert_same_outputs(layer(), torch.randn(2, 5, 3), "dynamo", dynamic=DYNAMIC, exclude=USES)
