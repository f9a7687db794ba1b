"""Rounding to the steps of an integer type, as training for quantization does it: fake quantization."""

import importlib

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic

# Registers the operators quantized_decomposed, before the exporter collects its translations.
importlib.import_module("torch.ao.quantization.fx._decomposed")
_OPERATORS = torch.ops.quantized_decomposed

_LIMITS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


@decomposition(
    torch.fake_quantize_per_tensor_affine, needed_on=("dynamo",), opset=(11, 99), exactness=Exactness.ROUNDING
)
def fake_quantize(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Rounds a tensor to steps of one size, by the operators that become QuantizeLinear and DequantizeLinear.

    Declines: limits that neither int8 nor uint8 holds; steps that are tensors.

    Math:   (clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale. Limits inside those of
            the type cut the tensor before it is rounded: a limit is a whole number of steps, so that nothing changes,
            and the pair stays together for the engines that look for one.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fake_quantize_per_tensor_affine.html
    """
    if isinstance(scale, Tensor) or isinstance(zero_point, Tensor):
        decline("wanted a scale and a zero point that are Python numbers, got tensors")
    dtype = _integer_type(quant_min, quant_max)
    if (quant_min, quant_max) != _LIMITS[dtype]:
        input = input.clamp((quant_min - zero_point) * scale, (quant_max - zero_point) * scale)
    steps = (scale, zero_point, *_LIMITS[dtype], dtype)
    return _OPERATORS.dequantize_per_tensor(_OPERATORS.quantize_per_tensor(input, *steps), *steps)


@decomposition(
    torch.fake_quantize_per_channel_affine, needed_on=("dynamo",), opset=(13, 99), exactness=Exactness.ROUNDING
)
def fake_quantize_channels(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Rounds each channel of a tensor to steps of its own.

    Declines: limits that neither int8 nor uint8 holds.

    Math:   as `fake_quantize`, with scale and zero_point (C,) along the axis.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fake_quantize_per_channel_affine.html
    """
    dtype = _integer_type(quant_min, quant_max)
    if (quant_min, quant_max) != _LIMITS[dtype]:
        shape = [-1 if i == axis % input.dim() else 1 for i in range(input.dim())]
        low, high = (((limit - zero_point) * scale).reshape(shape) for limit in (quant_min, quant_max))
        input = torch.minimum(torch.maximum(input, low), high)
    steps = (scale, zero_point, axis, *_LIMITS[dtype], dtype)
    return _OPERATORS.dequantize_per_channel(_OPERATORS.quantize_per_channel(input, *steps), *steps)


@symbolic("aten::_int_mm", needed_on=("torchscript", "dynamo"), opset=(10, 99), exactness=Exactness.BITWISE)
def int_mm(op: Ops, self: Value, mat2: Value) -> Value:
    """Product of two int8 matrices, (M, K) by (K, N), in int32.

    Source: https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/LinearAlgebra.cpp, _int_mm_cpu
    """
    return op.MatMulInteger(self, mat2)


def _integer_type(quant_min: int, quant_max: int) -> torch.dtype:
    dtype = torch.int8 if quant_min < 0 else torch.uint8
    least, most = _LIMITS[dtype]
    if quant_min < least or quant_max > most:
        decline(f"wanted limits that int8 or uint8 holds, got {quant_min} and {quant_max}")
    return dtype
