"""Plain recurrent layers over sequences of any length."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.recurrent import of_call
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

DYNAMIC = {"input": {0: "batch", 1: "length"}}


class Many(nn.Module):
    def __init__(self, nonlinearity):
        super().__init__()
        self.first = layer(nonlinearity, bidirectional=True, num_layers=2)
        self.last = nn.RNN(8, 4, bias=False, nonlinearity=nonlinearity)

    def forward(self, input):
        output, state = self.first(input)
        return self.last(output.transpose(0, 1), state[:1].transpose(1, 2).transpose(1, 2))[0], state


def layer(nonlinearity, **options):
    return nn.RNN(3, 4, batch_first=True, nonlinearity=nonlinearity, **options)


def x():
    return torch.randn(2, 5, 3)


class AnyLengthTests:
    name: str
    nonlinearity: str
    function: object

    def test_matches(self):
        result = assert_entry(self.name, Many(self.nonlinearity), x(), "dynamo", dynamic=DYNAMIC)
        assert result.nodes["RNN"] == 3

    def test_applied_where_the_length_is_fixed(self):
        result = assert_entry(self.name, layer(self.nonlinearity), x(), "dynamo", dynamic="batch")
        assert result.nodes["RNN"] == 1

    def test_torchscript_is_left_alone(self):
        result = assert_same_outputs(layer(self.nonlinearity), x(), "torchscript", dynamic=DYNAMIC)
        assert not result.applied

    def test_sentinel(self):
        @rewrite(self.function, name=self.name, needed_on=("dynamo",), registry=None)
        def broken(*args):
            output, state = of_call(self.nonlinearity.capitalize(), args, packed=False)
            return output.flip(1), state

        with pytest.raises(VerificationError):
            assert_same_outputs(layer(self.nonlinearity), x(), "dynamo", rewrites=[broken])

    def test_still_needed(self, exporter):
        assert_still_needed(self.name, layer(self.nonlinearity), x(), exporter, dynamic=DYNAMIC)
