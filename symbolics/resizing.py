"""interpolate where a stock file fails or errs: nearest-exact, area, antialiased, by scales that float32 rounds.

Math and source: torch_onnx_compat.functional.resize.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, windows_of
from torch_onnx_compat.functional.arithmetic import exact, varies
from torch_onnx_compat.functional.resize import Axis, resize_antialiased, resize_by_scale, resize_nearest_exact
from torch_onnx_compat.tracing import as_size, is_tracing, multiple_of, static_size

MOST = 2**31
"""No axis is longer."""

EXACT_MULTIPLES = range(1, 33)
"""Whole numbers k for which floor(i * (1 / k)) in float32 is i // k; it is not for 41."""


@dataclass(frozen=True)
class Call:
    """The arguments of F.interpolate."""

    input: Tensor
    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None
    antialias: bool = False

    def axes(self) -> list[Axis]:
        """Size and scale of each axis after the channels."""
        places = range(self.input.dim() - 2)
        if self.size is not None:
            outputs = self.size if isinstance(self.size, (tuple, list)) else [self.size] * len(places)
            return [Axis(i + 2, self._length(i), output, None) for i, output in zip(places, outputs, strict=True)]
        return [self._scaled_axis(i, scale) for i, scale in zip(places, self._scales(), strict=True)]

    def _scaled_axis(self, place: int, scale: Any) -> Axis:
        scale = exact(scale, self.input) if varies(scale) else float(scale)
        length = self._length(place)
        if type(length) is int and isinstance(scale, float):
            output = math.floor(length * scale)
        else:
            output = _scaled_size(self.input, place + 2, scale)
        return Axis(place + 2, length, output, None if self.recompute_scale_factor else scale)

    def _length(self, place: int) -> Any:
        fixed = static_size(self.input, place + 2)
        return self.input.shape[place + 2] if fixed is None else fixed

    def _scales(self) -> Any:
        given = self.scale_factor
        return given if isinstance(given, (tuple, list)) else [given] * (self.input.dim() - 2)

    def errs_in_float32(self) -> bool:
        """Whether ONNX's Resize, which has scales in float32, is wrong at some size of an axis that varies."""
        return any(
            varies(scale) or (not _is_plain(float(scale)) and static_size(self.input, place) is None)
            for place, scale in enumerate(self._scales(), 2)
        )

    def require_floating_point(self) -> None:
        """Declines integers, which torch rounds in ways of its own."""
        dtype = self.input.dtype
        if not dtype.is_floating_point:
            decline(f"the image must be of floating-point type, got {dtype}; convert it first, e.g. x.float()")


def _is_plain(scale: float) -> bool:
    """Whether float32 arithmetic with a scale errs at no size: whole numbers, halves of them, and 1/2, 1/4, 1/8 ..."""
    return (2 * scale).is_integer() or (math.frexp(scale)[0] == 0.5 and scale < 1)


def _scaled_size(x: Tensor, number: int, scale: float | Tensor) -> Any:
    if not is_tracing() and isinstance(scale, float) and _is_plain(scale):
        return torch.sym_int(x.shape[number] * scale)
    product = exact(x.shape[number], x) * scale
    return as_size(product.floor().long().reshape(()), 1, MOST)


# The entries, of which the first that applies to a call serves it


@decomposition(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def interpolate_antialias_by_scale(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock dynamo drops align_corners, and the scale for the sizes' ratio.

    Declines: integers, which torch rounds in ways of its own.
    """
    call = Call(*args, **kwargs)
    if not call.antialias:
        return NotImplemented
    axes = call.axes()
    if not call.align_corners and all(axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented
    call.require_floating_point()
    return resize_antialiased(call.input, axes, call.mode, bool(call.align_corners))


@decomposition(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def interpolate_antialias_to_matmul(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock TorchScript has no symbolic for it.

    Declines: integers, which torch rounds in ways of its own.
    """
    call = Call(*args, **kwargs)
    if not call.antialias:
        return NotImplemented
    call.require_floating_point()
    return resize_antialiased(call.input, call.axes(), call.mode, bool(call.align_corners))


_POOLS = {1: nn.functional.avg_pool1d, 2: nn.functional.avg_pool2d, 3: nn.functional.avg_pool3d}


@decomposition(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def interpolate_area_to_pool(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes by averaging; stock TorchScript errs or refuses where the output does not divide the input.

    Math:   area interpolation is adaptive average pooling; torch_onnx_compat.functional.adaptive_avg_pool.
    Source: torch/nn/functional.py
    """
    call = Call(*args, **kwargs)
    input = call.input
    if call.mode != "area" or call.align_corners is not None or call.antialias or input.dim() not in (3, 4, 5):
        return NotImplemented
    outputs = [axis.output for axis in call.axes()]
    windows = windows_of(input, outputs)
    if windows is not None and input.is_floating_point() and input.itemsize <= 4:  # onnxruntime pools no float64
        return _POOLS[len(windows)](input, windows)
    if is_single_cell(outputs):
        return input.mean(tuple(range(2, input.dim())), keepdim=True)
    return adaptive_avg_pool(input, outputs)


@decomposition(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock TorchScript has no symbolic for this mode."""
    call = Call(*args, **kwargs)
    return resize_nearest_exact(call.input, call.axes()) if call.mode == "nearest-exact" else NotImplemented


@decomposition(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact_by_scale(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock dynamo rounds where cells begin in another way."""
    call = Call(*args, **kwargs)
    if call.mode != "nearest-exact" or call.scale_factor is None or call.recompute_scale_factor:
        return NotImplemented
    axes = call.axes()
    if all(axis.is_fixed or axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented
    return resize_nearest_exact(call.input, axes)


@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def interpolate_nearest_to_fixed_size(input: Tensor, size: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Resizes any size to a fixed one, mode nearest; onnxruntime's Resize takes another cell at one size in twenty.

    Math: cell i of o is cell floor(i * (n / o)) of n, in float32; Resize divides by o / n instead.
    """
    call = Call(input, size, *args, **kwargs)
    if call.size is None or call.mode != "nearest":
        return NotImplemented
    axes = call.axes()
    if not any(type(axis.output) is int and type(axis.size) is not int for axis in axes):
        return NotImplemented
    return resize_by_scale(call.input, axes, call.mode, align_corners=False)


@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def interpolate_nearest_to_varying_size(input: Tensor, size: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Resizes to a size that the file computes, mode nearest; onnxruntime's Resize takes another cell at some sizes.

    Where the size is known to be the input's times a small whole number, Resize takes the same cells.

    Math: as interpolate_nearest_to_fixed_size.
    """
    call = Call(input, size, *args, **kwargs)
    if call.size is None or call.mode != "nearest":
        return NotImplemented
    axes = call.axes()
    varying = [axis for axis in axes if type(axis.output) is not int]
    if all((multiple_of(axis.output, input, axis.number) or 0) in EXACT_MULTIPLES for axis in varying):
        return NotImplemented
    return resize_by_scale(input, axes, call.mode, align_corners=False)


@decomposition(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def interpolate_aligned_line(input: Tensor, size: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Resizes (N, C, L) to a size that the file computes, corners aligned; stock dynamo divides by 0 for a size of 1.

    Math: as a picture of height 1.
    """
    call = Call(input, size, *args, **kwargs)
    if call.size is None or call.mode != "linear" or not call.align_corners:
        return NotImplemented
    (axis,) = call.axes()
    if type(axis.output) is int:
        return NotImplemented
    return nn.functional.interpolate(input.unsqueeze(2), (1, axis.output), None, "bilinear", True).squeeze(2)


@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_recomputed_scale(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes by a scale; a trace freezes the size where it varies, dynamo has its floor in float32.

    Declines: integers, with aligned corners, through dynamo.

    Math: an axis of n cells is resized to floor(n * scale), and the scale forgotten.
    """
    call = Call(*args, **kwargs)
    if not call.recompute_scale_factor or call.scale_factor is None or call.antialias or call.mode == "nearest-exact":
        return NotImplemented
    axes = call.axes()
    if call.mode == "nearest" and call.errs_in_float32():
        return resize_by_scale(call.input, axes, call.mode, align_corners=False)
    if call.align_corners and any(isinstance(axis.output, torch.SymInt) for axis in axes):
        call.require_floating_point()  # torch.export cannot ask of such sizes what its own decomposition asks
        return resize_by_scale(call.input, axes, call.mode, align_corners=True)
    outputs = [axis.output for axis in axes]
    return nn.functional.interpolate(call.input, outputs, None, call.mode, call.align_corners)


# Resize has its scales, and the floor of size times scale, in float32; eager torch in float64.
@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_varying_scale(*args: Any, **kwargs: Any) -> Tensor:
    """Resizes by a scale that the file computes, or such as 0.7, with which Resize is off at some sizes.

    Of 196 heights, a stock file is wrong at 167 for mode nearest and scale 0.3, at three for bilinear and 0.7
    (benchmarks/results/resize.md).

    Declines: integers, except by mode nearest.
    """
    call = Call(*args, **kwargs)
    if call.scale_factor is None or call.recompute_scale_factor or call.antialias:
        return NotImplemented
    if call.mode in ("nearest-exact", "area"):
        return NotImplemented
    axes = call.axes()
    if not (call.errs_in_float32() or (call.mode == "nearest" and any(axis.is_near_ratio for axis in axes))):
        return NotImplemented
    if call.mode != "nearest":
        call.require_floating_point()
    return resize_by_scale(call.input, axes, call.mode, bool(call.align_corners))
