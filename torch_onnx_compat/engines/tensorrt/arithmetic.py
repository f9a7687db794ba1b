"""Layers that compute value by value, sums over axes, products of matrices, normalization."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.engines.tensorrt.layers import TYPES, Call, fit_together, layer

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "EXP": torch.exp,
    "LOG": torch.log,
    "SQRT": torch.sqrt,
    "RECIP": torch.reciprocal,
    "ABS": torch.abs,
    "NEG": torch.neg,
    "SIN": torch.sin,
    "COS": torch.cos,
    "TAN": torch.tan,
    "SINH": torch.sinh,
    "COSH": torch.cosh,
    "ASIN": torch.asin,
    "ACOS": torch.acos,
    "ATAN": torch.atan,
    "ASINH": torch.asinh,
    "ACOSH": torch.acosh,
    "ATANH": torch.atanh,
    "CEIL": torch.ceil,
    "FLOOR": torch.floor,
    "ERF": torch.erf,
    "NOT": torch.logical_not,
    "SIGN": torch.sign,
    "ROUND": torch.round,  # halves to even, as in TensorRT
    "ISINF": torch.isinf,
    "ISNAN": torch.isnan,
}
_ELEMENTWISE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "PROD": torch.mul,
    "MAX": torch.maximum,
    "MIN": torch.minimum,
    "SUB": torch.sub,
    "DIV": lambda a, b: a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc"),
    "POW": torch.pow,
    "FLOOR_DIV": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "AND": torch.logical_and,
    "OR": torch.logical_or,
    "XOR": torch.logical_xor,
    "EQUAL": torch.eq,
    "GREATER": torch.gt,
    "LESS": torch.lt,
}
_ACTIVATIONS: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "RELU": lambda x, a, b: torch.relu(x),
    "SIGMOID": lambda x, a, b: torch.sigmoid(x),
    "TANH": lambda x, a, b: torch.tanh(x),
    "LEAKY_RELU": lambda x, a, b: torch.where(x >= 0, x, a * x),
    "ELU": lambda x, a, b: torch.where(x >= 0, x, a * torch.expm1(x)),
    "SELU": lambda x, a, b: torch.where(x > 0, b * x, b * a * torch.expm1(x)),
    "SOFTSIGN": lambda x, a, b: x / (1 + x.abs()),
    "SOFTPLUS": lambda x, a, b: a * torch.logaddexp(b * x, torch.zeros_like(x)),
    "CLIP": lambda x, a, b: x.clamp(a, b),
    "HARD_SIGMOID": lambda x, a, b: (a * x + b).clamp(0, 1),
    "SCALED_TANH": lambda x, a, b: a * torch.tanh(b * x),
    "THRESHOLDED_RELU": lambda x, a, b: torch.where(x > a, x, torch.zeros_like(x)),
    "GELU_ERF": lambda x, a, b: functional.gelu(x),
    "GELU_TANH": lambda x, a, b: functional.gelu(x, approximate="tanh"),
}


@layer("UNARY")
def unary(call: Call) -> Tensor:
    """A function of each value."""
    operation = call.get("op")
    if operation not in _UNARY:
        raise call.not_known(f"operation {operation}")
    x = call.input(0)
    return x.clone() if not x.is_floating_point() and operation in ("CEIL", "FLOOR", "ROUND") else _UNARY[operation](x)


@layer("ELEMENTWISE")
def elementwise(call: Call) -> Tensor:
    """A function of two values; sizes of 1 are repeated."""
    operation = call.get("op")
    if operation not in _ELEMENTWISE:
        raise call.not_known(f"operation {operation}")
    a, b = call.input(0), call.input(1)
    fit_together(call, a, b)
    return _ELEMENTWISE[operation](a, b)


@layer("ACTIVATION")
def activate(call: Call) -> Tensor:
    """An activation with the parameters alpha and beta."""
    kind = call.get("type")
    if kind not in _ACTIVATIONS:
        raise call.not_known(f"activation {kind}")
    return _ACTIVATIONS[kind](call.input(0), call.get("alpha"), call.get("beta"))


@layer("PARAMETRIC_RELU")
def leak(call: Call) -> Tensor:
    """The value, or where it is negative a multiple of it."""
    x, slope = call.input(0), call.input(1)
    fit_together(call, x, slope)
    return torch.where(x >= 0, x, slope * x)


@layer("SELECT")
def select(call: Call) -> Tensor:
    """The second input where the first is true, otherwise the third."""
    condition, a, b = call.input(0), call.input(1), call.input(2)
    fit_together(call, condition, a, b)
    return torch.where(condition.bool(), a, b)


@layer("CAST")
def cast(call: Call) -> Tensor:
    """The value in another type; floating-point numbers are not rounded."""
    return to_type(call, call.input(0), call.get("to_type"))


def to_type(call: Call, x: Tensor, kind: str) -> Tensor:
    """A tensor in one of TensorRT's types."""
    if kind not in TYPES:
        raise call.not_known(f"element type {kind}")
    return x.to(TYPES[kind])


@layer("IDENTITY")
def copy(call: Call) -> Tensor:
    """The input, perhaps in another type."""
    return to_type(call, call.input(0), call.layer.outputs[0].type)


@layer("SCALE")
def scale(call: Call) -> Tensor:
    """(x * scale + shift) ** power, with parameters for the whole tensor or for each channel."""
    x, mode = call.input(0), call.get("mode")
    sizes = {"UNIFORM": [1] * x.dim(), "ELEMENTWISE": list(x.shape)}.get(mode)
    if mode == "CHANNEL":
        axis = call.get("channel_axis")
        sizes = [-1 if index == axis else 1 for index in range(x.dim())]
    if sizes is None:
        raise call.not_known(f"mode {mode}")
    factor, shift, power = (call.weights(name, sizes) for name in ("scale", "shift", "power"))
    x = x if factor is None else x * factor
    x = x if shift is None else x + shift
    return x if power is None else x**power


@layer("REDUCE")
def reduce(call: Call) -> Tensor:
    """A sum, product, largest or smallest value or mean over axes."""
    x, operation, keeps = call.input(0), call.get("op"), call.get("keep_dims")
    axes = call.axes("axes", x.dim())
    if operation == "PROD":
        for axis in reversed(axes):
            x = x.prod(axis, keepdim=keeps, dtype=x.dtype)
        return x
    if operation == "SUM":
        return x.sum(axes, keepdim=keeps, dtype=x.dtype) if axes else x
    if operation == "AVG" and x.is_floating_point():
        return x.mean(axes, keepdim=keeps) if axes else x
    if operation in ("MAX", "MIN"):
        return (x.amax if operation == "MAX" else x.amin)(axes, keepdim=keeps) if axes else x
    raise call.not_known(f"operation {operation} of {call.layer.outputs[0].type}")


@layer("SOFTMAX")
def softmax(call: Call) -> Tensor:
    """Softmax along the axes of a bit mask."""
    x = call.input(0)
    axes = call.axes("axes", x.dim())
    return torch.exp(x - torch.logsumexp(x, axes, keepdim=True))


@layer("CUMULATIVE")
def accumulate(call: Call) -> Tensor:
    """Sums along an axis up to each place, without the place itself where exclusive."""
    x, axis = call.input(0), int(call.input(1))
    if call.get("op") != "SUM":
        raise call.not_known(f"operation {call.get('op')}")
    turned = x.flip(axis) if call.get("reverse") else x
    sums = turned.cumsum(axis, dtype=x.dtype)
    sums = sums - turned if call.get("exclusive") else sums
    return sums.flip(axis) if call.get("reverse") else sums


@layer("MATRIX_MULTIPLY")
def multiply_matrices(call: Call) -> Tensor:
    """Products of matrices or vectors, which may be transposed."""
    ways = [call.get("op0"), call.get("op1")]
    factors = []
    for index, way in enumerate(ways):
        x = call.input(index)
        if way == "VECTOR":
            x = x.unsqueeze(-2 if index == 0 else -1)
        factors.append(x.transpose(-2, -1) if way == "TRANSPOSE" else x)
    a, b = factors
    if a.dim() != b.dim() or a.shape[-1] != b.shape[-2]:
        raise call.fault(f"multiplies shapes {tuple(a.shape)} and {tuple(b.shape)}, which do not fit")
    fit_together(call, a.new_empty(a.shape[:-2]), b.new_empty(b.shape[:-2]))
    product = a @ b
    if ways[1] == "VECTOR":
        product = product.squeeze(-1)
        return product.squeeze(-1) if ways[0] == "VECTOR" else product
    return product.squeeze(-2) if ways[0] == "VECTOR" else product


@layer("EINSUM")
def contract(call: Call) -> Tensor:
    """A sum of products by an equation."""
    return torch.einsum(call.get("equation"), *(x for x in call.inputs if x is not None))


@layer("NORMALIZATION")
def normalize(call: Call) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes of a bit mask, or over groups of channels."""
    x, factor, bias = call.input(0), call.input(1), call.input(2)
    axes, groups = call.axes("axes", x.dim()), call.get("num_groups")
    if groups != 1:
        parts = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        normal = _normal(parts, list(range(2, parts.dim())), call.get("epsilon")).reshape(x.shape)
        if factor.numel() == groups != x.shape[1]:
            repeats = x.shape[1] // groups
            factor, bias = (t.repeat_interleave(repeats, dim=1) for t in (factor, bias))
    else:
        normal = _normal(x, axes, call.get("epsilon"))
    fit_together(call, normal, factor, bias)
    return normal * factor + bias


def _normal(x: Tensor, axes: list[int], epsilon: float) -> Tensor:
    mean = x.mean(axes, keepdim=True)
    return (x - mean) / (((x - mean) ** 2).mean(axes, keepdim=True) + epsilon).sqrt()


@layer("QUANTIZE")
def quantize(call: Call) -> Tensor:
    """Whole numbers of 8 bits: x / scale, rounded with halves to even, plus the zero point."""
    kind = call.layer.outputs[0].type
    if kind not in ("INT8", "UINT8"):
        raise call.not_known(f"type {kind}")
    x, (step, zero) = call.input(0), _steps(call)
    info = torch.iinfo(TYPES[kind])
    return (torch.round(x / step) + zero).clamp(info.min, info.max).to(TYPES[kind])


@layer("DEQUANTIZE")
def dequantize(call: Call) -> Tensor:
    """(x - zero point) * scale."""
    step, zero = _steps(call)
    return (call.input(0).double() - zero) * step


def _steps(call: Call) -> tuple[Tensor, Tensor]:
    """The scale and the zero point, shaped to the input.

    The scale's shape tells of blocks: one number, one for each place of an axis, or one for each block, with as many
    axes as the input. The attribute `block_shape` cannot be read from TensorRT for RTX 1.7.1, with blocks or without.
    """
    x, step, zero = call.input(0), call.input(1), call.optional(2)
    zero = torch.zeros_like(step) if zero is None else zero.double()
    if step.numel() == 1:
        return step.reshape(()), zero.reshape(-1)[0]
    if step.dim() > 1:
        return _repeat_blocks(call, x, step), _repeat_blocks(call, x, zero) if zero.dim() > 1 else zero.reshape(-1)[0]
    axis = call.get("axis")
    sizes = [-1 if index == axis else 1 for index in range(x.dim())]
    return step.reshape(sizes), zero.reshape(sizes) if zero.numel() > 1 else zero.reshape(-1)[0]


def _repeat_blocks(call: Call, x: Tensor, of_blocks: Tensor) -> Tensor:
    """A number for each element, from one for each block."""
    if x.dim() != of_blocks.dim() or any(size % count for size, count in zip(x.shape, of_blocks.shape, strict=True)):
        raise call.fault(f"has scales of shape {tuple(of_blocks.shape)} for {tuple(x.shape)}")
    for axis, (size, count) in enumerate(zip(x.shape, of_blocks.shape, strict=True)):
        of_blocks = of_blocks.repeat_interleave(size // count, dim=axis)
    return of_blocks
