"""Fake quantization, in rows; what is declined."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs, assert_still_needed

ROWS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.137, -0.3]])
MATRIX = torch.tensor([[-128, 127, 3, 0], [5, -6, 7, 127], [1, 2, -128, 4], [0, 0, 9, -9]], dtype=torch.int8)


class Tensorwise(nn.Module):
    def __init__(self, scale, zero_point, *limits):
        super().__init__()
        self.steps = scale, zero_point, *limits

    def forward(self, x):
        return torch.fake_quantize_per_tensor_affine(x, *self.steps)


class Channelwise(nn.Module):
    def __init__(self, zero_point, *limits):
        super().__init__()
        self.register_buffer("scale", torch.tensor([0.011, 0.023, 0.004]))
        self.register_buffer("zero_point", torch.tensor(zero_point, dtype=torch.int32))
        self.limits = limits

    def forward(self, x):
        return torch.fake_quantize_per_channel_affine(x, self.scale, self.zero_point, 1, *self.limits)


def tensor_without_limits(input, scale, zero_point, quant_min, quant_max):
    return (input / scale).round() * scale


def channels_without_limits(input, scale, zero_point, axis, quant_min, quant_max):
    return (input / scale).round() * scale


DYNAMIC = {"x": {0: "batch"}}
EXAMPLES = [
    Example("fake_quantize", Tensorwise(0.0101, 3, 0, 255), (ROWS,), dynamic=DYNAMIC, broken=tensor_without_limits),
    Example("fake_quantize", Tensorwise(0.0101, 3, 0, 127), (ROWS,), dynamic=DYNAMIC, broken=tensor_without_limits),
    Example("fake_quantize_channels", Channelwise([0, 0, 0], -128, 127), (ROWS,), dynamic=DYNAMIC,
            broken=channels_without_limits),
    Example("int_mm", lambda x, y: torch._int_mm(x, y.t()), (MATRIX, MATRIX[:3].flip(1)),
            dynamic={"x": {0: "rows"}}, broken=lambda op, self, mat2: op.MatMulInteger(op.Neg(self), mat2)),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES[:3], ids=lambda example: example.entry)
def test_the_file_holds_a_pair(example):
    result = assert_entry(example.entry, example.model, example.inputs, "dynamo", dynamic=DYNAMIC)
    assert (result.nodes["QuantizeLinear"], result.nodes["DequantizeLinear"]) == (1, 1)


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        ("fake_quantize", Tensorwise(0.011, -5, -8, 7)),
        ("fake_quantize_channels", Channelwise([1, 0, 9], 0, 63)),
        ("fake_quantize_channels", Channelwise([0, 0, 0], -127, 127)),
    ],
)
def test_limits_inside_those_of_the_type(entry, model):
    """TorchScript takes those of whole types only, and says so."""
    result = assert_entry(entry, model, (ROWS,), "dynamo", dynamic=DYNAMIC)
    assert (result.nodes["QuantizeLinear"], result.nodes["DequantizeLinear"]) == (1, 1)


def test_wide_limits_are_declined():
    with pytest.raises(CompatError, match="wanted limits that int8 or uint8 holds, got 0 and 1023"):
        assert_same_outputs(Tensorwise(0.01, 0, 0, 1023), ROWS, "dynamo")


def test_steps_that_are_tensors_are_declined():
    model = lambda x: torch.fake_quantize_per_tensor_affine(x, x.max(), x.int()[0, 0], 0, 255)  # noqa: E731
    with pytest.raises(CompatError, match="wanted a scale and a zero point that are Python numbers"):
        assert_same_outputs(model, ROWS, "dynamo")


def test_it_is_still_needed():
    assert_still_needed("fake_quantize", Tensorwise(0.0101, 3, 0, 255), ROWS, "dynamo", dynamic=DYNAMIC)
