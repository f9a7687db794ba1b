"""Models that torch.ao converted: eager, by FX, as reference models, with dynamic layers; each on the same steps."""

import functools
import re
import warnings

import pytest
import torch
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization import quantize_fx
from torch.nn import functional

from torch_onnx_compat import CompatError, Verify, export_compat
from torch_onnx_compat.functional.quantized import OnFloats, Steps, dynamic_linear, steps_of
from torch_onnx_compat.testing import Example, assert_entry

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

GENERATOR = torch.Generator().manual_seed(0)
IMAGE = torch.rand(2, 3, 12, 12, generator=GENERATOR)
ROWS = torch.randn(4, 16, generator=GENERATOR)


class Stubs(nn.Module):
    """What it holds, between a QuantStub and a DeQuantStub."""

    def __init__(self, *layers):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.dequant(self.layers(self.quant(x)))


class Residual(nn.Module):
    """Sums, products and joins of quantized tensors; a mean and pools, which round once more; moves."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.stem, self.norm, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.depthwise, self.up = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.sum, self.product, self.join = FloatFunctional(), FloatFunctional(), FloatFunctional()
        self.head = nn.Linear(16, 5)

    def forward(self, image):
        x = self.relu(self.norm(self.stem(self.quant(image))))
        x = self.sum.add_relu(x, self.depthwise(x))
        x = functional.avg_pool2d(self.up(x), 3)
        x = self.product.mul(x, torch.sigmoid(x))
        x = self.join.cat([functional.max_pool2d(x, 2), functional.interpolate(x, scale_factor=0.5)], 1)
        return self.dequant(self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1)))


class Plain(nn.Module):
    """For FX, which puts the stubs in itself."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.body, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, image):
        x = torch.relu(self.norm(self.stem(image)))
        x = torch.cat([torch.relu(x + self.body(x)), x * 0.5], 2)
        return self.head(x.mean((2, 3)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 24), nn.Linear(24, 7)

    def forward(self, rows):
        return self.last(torch.relu(self.first(rows)))


def quietly(build):
    """Without torch.ao's warnings that it will go: the rows are made when the file is loaded."""

    @functools.wraps(build)
    def quiet(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return build(*args, **kwargs)

    return quiet


def trained(model, example):
    """With statistics in its norms."""
    torch.manual_seed(0)
    model.train()(example)
    return model.eval()


@quietly
def converted(model, example, engine="fbgemm"):
    model = trained(model, example)
    model.qconfig = quantization.get_default_qconfig(engine)
    for module in model.modules():
        if isinstance(module, nn.ConvTranspose2d):
            module.qconfig = quantization.default_qconfig  # its weights have one scale
    prepared = quantization.prepare(model)
    prepared(example)
    return quantization.convert(prepared)


@quietly
def residual():
    model = trained(Residual(), IMAGE)
    return converted(quantization.fuse_modules(model, [["stem", "norm", "relu"]]), IMAGE)


@quietly
def by_fx(convert):
    model = trained(Plain(), IMAGE)
    prepared = quantize_fx.prepare_fx(model, quantization.get_default_qconfig_mapping("fbgemm"), (IMAGE,))
    prepared(IMAGE)
    return convert(prepared)


@quietly
def dynamic(dtype=torch.qint8, config=None):
    torch.manual_seed(0)
    which = {nn.Linear} if config is None else {nn.Linear: config}
    return quantization.quantize_dynamic(Words().eval(), which, dtype)


class Other(nn.Module):
    """A model of other values, without the original's layers."""

    def forward(self, image):
        return torch.zeros(image.shape[0], 5) + image.mean()


def model_of_other_values(model):
    return Other() if isinstance(model, Residual) else NotImplemented


class Unrounded(nn.Module):
    def add_relu(self, x, y):
        return x - y

    mul = add_relu

    def cat(self, x, dim):
        return torch.cat(x[::-1], dim)


STEP = {"verify": Verify(atol=0.1)}
"""The networks' own outputs are on steps, and one of them is a large difference for a small network."""

DYNAMO = {"exporters": ("dynamo",), "options": STEP}
LINEAR = converted(Stubs(nn.Linear(16, 16)), ROWS)
CONVOLUTION = converted(Stubs(nn.Conv2d(3, 4, 3)), IMAGE)
EXAMPLES = [
    Example("quantized_model_on_floats", residual(), (IMAGE,), model_of_other_values, **DYNAMO),
    Example("quantized_convolution_on_floats", CONVOLUTION, (IMAGE,), lambda module: nn.AvgPool2d(3, 1), **DYNAMO),
    Example("quantized_linear_on_floats", LINEAR, (ROWS,), lambda module: nn.Identity(), **DYNAMO),
    # The whole model on floats has these functions, too: this entry is needed in parts of models only.
    Example("quantized_functions_on_floats", residual(), (IMAGE,), lambda module: Unrounded(), claims=(), **DYNAMO),
    Example("quantize_on_floats", LINEAR, (ROWS,), lambda module: nn.Tanh(), **DYNAMO),
    Example("dynamic_linear_in_integers", dynamic(), (ROWS,), lambda module: nn.Linear(*module.weight().shape[::-1])),
]


@pytest.mark.parametrize("convert", [quantize_fx.convert_fx, quantize_fx.convert_to_reference_fx])
def test_models_of_fx(convert):
    result = export_compat(by_fx(convert), IMAGE, dynamic="batch")
    assert result.exporter == "dynamo"
    assert result.nodes["QuantizeLinear"] >= 6
    assert all(row.ok for row in result.table)


def test_weights_are_in_eight_bits():
    result = assert_entry("quantized_model_on_floats", residual(), (IMAGE,), "dynamo", dynamic="batch", **STEP)
    floats = [t for t in result.model_proto.graph.initializer if t.data_type == 1 and len(t.dims) > 1]
    assert not floats
    assert result.nodes["DequantizeLinear"] > result.nodes["QuantizeLinear"]


def test_float16_weights(exporter, monkeypatch):
    engines = torch.backends.quantized.supported_engines
    monkeypatch.setattr(torch.backends.quantized, "engine", "fbgemm" if "fbgemm" in engines else "qnnpack")
    result = export_compat(dynamic(torch.float16), ROWS, dynamic="batch", exporter=exporter)
    assert "MatMulInteger" not in result.nodes


def test_a_weight_for_each_channel(exporter):
    model = dynamic(config=quantization.per_channel_dynamic_qconfig)
    result = export_compat(model, ROWS, dynamic="batch", exporter=exporter)
    assert result.nodes["MatMulInteger"] == 2


def test_the_callers_model_stays_quantized():
    model = residual()
    before, forward = model(IMAGE), type(model).forward
    export_compat(model, IMAGE, exporter="dynamo")
    assert torch.equal(model(IMAGE), before)
    assert model.forward.__func__ is forward
    assert "Quantized" in str(model)


def test_a_recurrent_layer_is_refused(exporter):
    model = quantization.quantize_dynamic(nn.Sequential(nn.LSTM(4, 4)).eval(), {nn.LSTM}, torch.qint8)
    with pytest.raises(CompatError):
        export_compat(model, torch.randn(3, 1, 4), exporter=exporter)


# Steps


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sigmoid(x),
        lambda x: torch.tanh(x),
        lambda x: functional.hardsigmoid(x),
        lambda x: functional.hardtanh(x, -0.5, 0.9),
        lambda x: x.mean((2, 3)),
        lambda x: functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
        lambda x: functional.adaptive_avg_pool2d(x, 5),
        lambda x: functional.leaky_relu(x, 0.1),
        lambda x: torch.cat([x, x.relu()], 1),
        lambda x: x.permute(0, 2, 3, 1)[:, 1:].reshape(-1, 3),
        lambda x: torch.ops.quantized.add_scalar(x, 0.3),
        lambda x: torch.ops.quantized.add_scalar(x, 3.3),
        lambda x: torch.ops.quantized.mul_scalar(x, 0.3),
        lambda x: torch.ops.quantized.mul_relu(x, -3.3),
        lambda x: torch.ops.quantized.add_relu(x, x, 0.03, 7),
        lambda x: torch.ops.quantized.mul(x, x, 0.03, 7),
        lambda x: torch.ops.quantized.hardswish(x, 0.02, 11),
        lambda x: torch.ops.quantized.cat([x, x], 1, 0.03, 7),
    ],
)
def test_functions_on_steps(function):
    """The numbers of the quantized tensor, and its steps: all but a few that lie between two steps."""
    x = 4 * torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)) - 2
    wanted = function(torch.quantize_per_tensor(x, 4 / 255, 120, torch.quint8))
    with OnFloats():
        found = function(torch.quantize_per_tensor(x, 4 / 255, 120, torch.quint8))
    steps = steps_of(found)
    assert (pytest.approx(steps.scale), steps.zero_point) == (wanted.q_scale(), wanted.q_zero_point())
    off = (found - wanted.dequantize()).abs() / steps.scale
    assert off.max() < 1.01
    assert (off > 0.01).float().mean() < 0.04


def test_what_has_no_form_is_named():
    x = torch.rand(2, 3)
    with OnFloats(), pytest.raises(NotImplementedError, match=re.escape("torch.ops.quantized.batch_norm2d")):
        torch.ops.quantized.batch_norm2d(x, x, x, x, x, 1e-5, 0.1, 0)
    with pytest.raises(NotImplementedError, match="wanted steps of eight bits"):
        Steps(0.1, 0, torch.qint32).round(x)


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-7])
@pytest.mark.parametrize("low", [-1.0, 0.5])
def test_steps_of_a_run(scale, low):
    generator = torch.Generator().manual_seed(2)
    x = scale * (low + torch.rand(5, 16, generator=generator))
    layer = dynamic().first
    weight = layer.weight()
    found = dynamic_linear(x, weight.int_repr(), torch.tensor(weight.q_scale()), layer.bias(), 127)
    torch.testing.assert_close(found, layer(x), rtol=1e-4, atol=1e-4 * max(scale, 1e-3))
