import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.recurrent import of_call
from torch_onnx_compat.testing import assert_same_outputs

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")

USES = ("lstm_projection_to_matmul",)
DYNAMIC = {"x": {0: "batch", 1: "length"}, "h": {1: "batch"}, "c": {1: "batch"}}


class Given(nn.Module):
    """With an initial state."""

    def __init__(self, **options):
        super().__init__()
        self.layer = nn.LSTM(3, 4, proj_size=2, batch_first=True, **options)

    def forward(self, x, h, c):
        output, state = self.layer(x, (h, c))
        return output, *state


def inputs(directions=1):
    return torch.randn(2, 5, 3), torch.randn(directions, 2, 2), torch.randn(directions, 2, 4)


@settings(max_examples=20, deadline=None)
@given(st.booleans(), st.booleans(), st.integers(1, 3), st.integers(1, 4))
def test_eager_is_torchs(bidirectional, bias, layers, length):
    layer = nn.LSTM(3, 4, layers, bias, proj_size=2, bidirectional=bidirectional).double()
    directions = layers * (1 + bidirectional)
    shapes = ((length, 2, 3), (directions, 2, 2), (directions, 2, 4))
    x, h, c = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    args = (x, (h, c), layer._flat_weights, bias, layers, 0.0, False, bidirectional, False)
    torch.testing.assert_close(of_call("LSTM", args, packed=False), torch.lstm(*args))


def test_matches(exporter):
    assert_same_outputs(Given(bidirectional=True), inputs(2), exporter, dynamic=DYNAMIC, uses=USES)


def test_one_node_for_a_layer(exporter):
    result = assert_same_outputs(nn.LSTM(3, 4, proj_size=2), torch.randn(5, 2, 3), exporter, uses=USES)
    assert result.nodes["LSTM"] == 1


def test_others_are_left_alone():
    result = assert_same_outputs(nn.LSTM(3, 4, bidirectional=True), torch.randn(5, 2, 3), "torchscript")
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(torch.lstm, name="lstm_projection_to_matmul", needed_on=EXPORTERS, registry=None)
    def broken(*args):
        output, *state = of_call("LSTM", args, packed=False)
        return output * 1.01, *state

    with pytest.raises(VerificationError):
        assert_same_outputs(Given(), inputs(), "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(Given(), inputs(), exporter, exclude=USES)
