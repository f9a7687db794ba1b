"""Models that were trained for quantization, eager and FX; layers that still observe are refused."""

import pytest
import torch
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.quantization.fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.testing import Example, assert_entry

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

ROWS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.137, -0.3]])
IMAGE = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def settled(layer, example=ROWS):
    """A layer that has seen an input, and observes no more."""
    layer(example)
    return layer.eval().apply(quantization.disable_observer)


class Layer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.relu, self.head = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Linear(8, 5)

    def forward(self, image):
        x = self.relu(self.conv(self.quant(image)))
        return self.dequant(self.head(x.mean((2, 3))))


def fused():
    return settled(FusedMovingAvgObsFakeQuantize(quant_min=0, quant_max=255, dtype=torch.quint8))


def per_channel():
    return settled(
        FakeQuantize(
            quantization.MovingAveragePerChannelMinMaxObserver,
            -128,
            127,
            dtype=torch.qint8,
            qscheme=torch.per_channel_symmetric,
            ch_axis=1,
        )
    )


def trained_for_quantization():
    torch.manual_seed(0)
    net = Net().train()
    net.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    return settled(quantization.prepare_qat(net), IMAGE)


EXAMPLES = [
    Example(
        "fixed_fake_quantize", Layer(fused()), (ROWS,), dynamic={"x": {0: "batch"}}, broken=lambda module: nn.Identity()
    ),
]


def test_a_trained_network(exporter):
    result = assert_entry("fixed_fake_quantize", trained_for_quantization(), (IMAGE,), exporter, dynamic="batch")
    assert result.nodes["QuantizeLinear"] == result.nodes["DequantizeLinear"] == 5


def test_the_layer_that_is_not_fused(exporter):
    result = assert_entry("fixed_fake_quantize", Layer(per_channel()), (ROWS,), exporter)
    assert result.nodes["QuantizeLinear"] == 1


def test_steps_that_are_switched_off(exporter):
    layer = fused().apply(quantization.disable_fake_quant)
    result = export_compat(Layer(layer), ROWS, exporter=exporter)
    assert "QuantizeLinear" not in result.nodes


def test_a_layer_that_still_observes_is_refused(exporter):
    net = trained_for_quantization().apply(quantization.enable_observer)
    with pytest.raises(CompatError, match="disable_observer"):
        export_compat(net, IMAGE, exporter=exporter)
