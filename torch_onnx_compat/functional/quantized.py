"""Quantized tensors as floats: scales, zero points and rounding, in one place.

A quantized tensor stands for the numbers (q - zero point) * scale. A float tensor of these numbers, with a rounding to
the same steps behind each operation that makes new ones, computes the same; no exporter has to know quantized tensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

# Registers the operators quantized_decomposed, before the exporter collects its translations.
importlib.import_module("torch.ao.quantization.fx._decomposed")

_LIMITS: dict[torch.dtype, tuple[int, int, torch.dtype]] = {
    torch.quint8: (0, 255, torch.uint8),
    torch.qint8: (-128, 127, torch.int8),
}

_MARK = "_torch_onnx_compat_steps"

_UNMARKED: Any = torch.ops.aten.detach.default
"""Another tensor of the same numbers; models call it as a method, which is another function here."""


@dataclass(frozen=True)
class Steps:
    """The steps of a quantized tensor."""

    scale: float
    zero_point: int
    dtype: torch.dtype = torch.quint8

    def round(self, x: Tensor) -> Tensor:
        """Rounds a float tensor to the steps, and marks the result as quantized.

        Raises:
            NotImplementedError: The type has more than eight bits.
        """
        if self.dtype not in _LIMITS:
            raise NotImplementedError(f"wanted steps of eight bits, got {self.dtype}")
        least, most, _ = _LIMITS[self.dtype]
        return self.mark(torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero_point, least, most))

    def mark(self, x: Tensor) -> Tensor:
        """Marks a float tensor that lies on the steps."""
        setattr(x, _MARK, self)
        return x


def steps_of(x: Any) -> Steps | None:
    """The steps of a float tensor that stands for a quantized one; None for any other."""
    return getattr(x, _MARK, None) if isinstance(x, Tensor) else None


def floats(x: Tensor) -> Tensor:
    """The same numbers, which nothing marks as quantized."""
    return _UNMARKED(x) if steps_of(x) is not None else x


class QuantizedWeight(torch.nn.Module):
    """A weight in eight bits, which is dequantized where it is read.

    Args:
        weight: A quantized tensor, with one scale or one for each channel.
    """

    integers: Tensor
    scales: Tensor
    zero_points: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        weight = weight.detach()
        self.register_buffer("integers", weight.int_repr())
        self.axis = None
        if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            self.scale, self.zero_point = float(weight.q_scale()), int(weight.q_zero_point())
        else:
            self.axis = int(weight.q_per_channel_axis())
            self.register_buffer("scales", weight.q_per_channel_scales().float())
            self.register_buffer("zero_points", weight.q_per_channel_zero_points().to(self.integers.dtype))

    def forward(self) -> Tensor:
        """The weight in float32."""
        dtype = self.integers.dtype
        limits = torch.iinfo(dtype).min, torch.iinfo(dtype).max, dtype
        operators = torch.ops.quantized_decomposed
        if self.axis is None:
            found: Tensor = operators.dequantize_per_tensor(self.integers, self.scale, self.zero_point, *limits)
        else:
            channels = self.scales, self.zero_points, self.axis
            found = operators.dequantize_per_channel(self.integers, *channels, *limits)
        return found


def dynamic_steps(x: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The scale and the zero point that torch gives a tensor at run time, float32 scalars.

    Math:   from min(x, 0) and max(x, 0) to 0 … most; a scale of 0 becomes 0.1, and none is below 6.1e-5.
    Source: aten/src/ATen/native/quantized/cpu/QuantUtils.h, ChooseQuantizationParams
    """
    least, largest = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (largest - least) / most
    scale = torch.where(scale == 0, torch.full_like(scale, 0.1), scale.clamp(min=6.1e-5))
    return scale, (-least / scale).clamp(0, most).round()


def dynamic_linear(x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None, most: int) -> Tensor:
    """A linear layer whose input is quantized with the steps of its own range, in whole numbers.

    Args:
        x: (..., K).
        weight: (N, K), int8, zero points 0.
        scales: Of the weight, (N,) or scalar.
        bias: (N,) or None.
        most: The largest number that the input is rounded to, 127 or 255.
    """
    scale, zero_point = dynamic_steps(x, most)
    shift = 0 if most == 127 else 128  # so that int8 holds it
    integers = ((x / scale).round() + zero_point).clamp(0, most) - shift
    rows = integers.to(torch.int8).reshape(-1, x.shape[-1])
    sums = torch._int_mm(rows, weight.t())
    zeros = (zero_point - shift) * weight.to(torch.float32).sum(1)
    products = (sums.to(torch.float32) - zeros) * (scale * scales)
    found = products.reshape(*x.shape[:-1], weight.shape[0])
    return found if bias is None else found + bias


def _joined(tensors: list[Tensor], *args: Any, **kwargs: Any) -> Tensor:
    return torch.cat(tensors, *args, **kwargs)


_COMPUTED: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "add_relu": lambda a, b: torch.relu(a + b),
    "mul": torch.mul,
    "mul_relu": lambda a, b: torch.relu(a * b),
    "matmul": torch.matmul,
    "cat": _joined,
    "cat_relu": lambda tensors, dim: torch.relu(torch.cat(tensors, dim)),
    "hardswish": functional.hardswish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": lambda x, slope, inplace=False: functional.leaky_relu(x, slope),
    "celu": lambda x, alpha=1.0: functional.celu(x, alpha),
    "elu": lambda x, alpha=1.0: functional.elu(x, alpha),
    "softmax": torch.softmax,
}
"""torch's operators of the namespace quantized, without the scale and the zero point at their end."""

_FIXED = {
    "sigmoid": Steps(1 / 256, 0),
    "hardsigmoid": Steps(1 / 256, 0),
    "tanh": Steps(2 / 256, 128),
}
"""Functions whose results have steps of their own."""

_HANDED_ON = """
__getitem__ chunk clone contiguous detach dropout expand flatten identity max_pool1d max_pool2d max_pool3d permute
reshape relu select split squeeze stack transpose unflatten unsqueeze view
"""
HANDED_ON = frozenset(_HANDED_ON.split())
"""Functions whose results lie on the steps of what they read: nothing is to be rounded."""


class OnFloats(TorchFunctionMode):
    """While active, what makes or takes quantized tensors makes and takes float tensors on their steps."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func in _INSTEAD:
            return _INSTEAD[func](*args, **kwargs)
        operator = _operator_name(func)
        if operator.startswith("quantized::"):
            return _compute(operator.removeprefix("quantized::").partition(".")[0], args, kwargs)
        first = args[0] if args else None
        given = [*first, *args[1:]] if isinstance(first, (list, tuple)) else args
        steps = next((s for s in map(steps_of, given) if s is not None), None)
        result = func(*args, **kwargs)
        if steps is None or func is _UNMARKED:
            return result
        return _on_steps(result, _FIXED.get(name, steps), is_handed_on=name in HANDED_ON)


def _operator_name(func: Any) -> str:
    """``quantized::add`` of torch.ops.quantized.add; empty for functions and methods."""
    name = getattr(func, "_qualified_op_name", "")
    return str(name or (func._schema.name if hasattr(func, "_schema") else ""))


def _on_steps(result: Any, steps: Steps, *, is_handed_on: bool) -> Any:
    """What torch's kernel of quantized tensors gives: the steps of what it reads."""
    if isinstance(result, (list, tuple)):
        return type(result)(_on_steps(item, steps, is_handed_on=is_handed_on) for item in result)
    if not isinstance(result, Tensor) or not result.is_floating_point():
        return result
    return steps.mark(result) if is_handed_on else steps.round(result)


def _quantize(input: Tensor, scale: Any, zero_point: Any, dtype: torch.dtype) -> Tensor:
    return Steps(float(scale), int(zero_point), dtype).round(input)


def _quantize_channels(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
    if dtype not in _LIMITS:
        raise NotImplementedError(f"wanted steps of eight bits, got {dtype}")
    zeros = zero_points.to(torch.int32)
    return torch.fake_quantize_per_channel_affine(input, scales.float(), zeros, axis, *_LIMITS[dtype][:2])


def _scale_of(x: Tensor) -> float:
    steps = steps_of(x)
    return x.q_scale() if steps is None else steps.scale


def _zero_point_of(x: Tensor) -> int:
    steps = steps_of(x)
    return x.q_zero_point() if steps is None else steps.zero_point


_INSTEAD: dict[Any, Callable[..., Any]] = {
    torch.quantize_per_tensor: _quantize,
    torch.quantize_per_channel: _quantize_channels,
    torch.dequantize: floats,
    Tensor.dequantize: floats,
    Tensor.q_scale: _scale_of,
    Tensor.q_zero_point: _zero_point_of,
}
"""What is called instead of the functions that make, take or look into quantized tensors."""


def _compute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """One of torch's operators of the namespace quantized."""
    has_number = len(args) > 1 and isinstance(args[1], (int, float)) and steps_of(args[0]) is not None
    kind, _, after = name.replace("_scalar", "").partition("_")
    if kind in ("add", "mul") and has_number:
        by_number = _add_scalar if kind == "add" else _mul_scalar
        return by_number(args[0], args[1], has_relu=after == "relu")
    if name not in _COMPUTED:
        raise NotImplementedError(f"torch.ops.quantized.{name} has no form in floats here")
    given = dict(kwargs)
    scale, zero_point = (given.pop(key, given.pop(f"output_{key}", None)) for key in ("scale", "zero_point"))
    if scale is None:
        *args, scale, zero_point = args  # type: ignore[assignment]
    assert zero_point is not None
    return Steps(float(scale), int(zero_point)).round(_COMPUTED[name](*args, **given))


def _mul_scalar(x: Tensor, number: float, *, has_relu: bool) -> Tensor:
    """Multiplies the scale; a negative number mirrors the steps."""
    steps = steps_of(x)
    assert steps is not None
    least, most, _ = _LIMITS[steps.dtype]
    zero_point = steps.zero_point if number >= 0 else least + most - steps.zero_point
    made = Steps(steps.scale * abs(number), zero_point, steps.dtype)
    found = x * number
    return made.round(torch.relu(found) if has_relu else found)


def _add_scalar(x: Tensor, number: float, *, has_relu: bool) -> Tensor:
    """Moves the zero point by the number in steps; where that leaves the type's range, the steps become larger.

    Source: aten/src/ATen/native/quantized/cpu/BinaryOps.cpp, quantized_add_scalar
    """
    steps = steps_of(x)
    assert steps is not None
    least, most, _ = _LIMITS[steps.dtype]
    whole = round(number / steps.scale)
    moved = steps.zero_point - whole
    if moved < least:
        made = Steps((most - moved) / (most - least) * steps.scale, least, steps.dtype)
    elif moved > most:
        made = Steps((moved - least) / (most - least) * steps.scale, most, steps.dtype)
    else:
        made = Steps(steps.scale, moved, steps.dtype)
    found = x + whole * steps.scale
    return made.round(torch.relu(found) if has_relu else found)
