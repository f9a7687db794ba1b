"""interpolate: nearest-exact, antialiased, area, and scales that vary.

interpolate by tables and matrices: nearest-exact, and antialiased bilinear and bicubic.

Math:   s = n / o, or the inverse of the scale that was given, is what one output cell covers of an axis of n cells;
        with align_corners it is (n - 1) / (o - 1).
        nearest-exact: output i is cell floor((i + 1/2) s).
        Antialiased: output i is the mean of all cells j, weighted by the filter at (j + 1/2 - (i + 1/2) s) / max(s, 1).
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h,
        ATen/native/cpu/UpSampleKernel.cpp

interpolate by a scale that is kept, nearest, linear and bicubic, by tables of cells and weights.

Math:   with scale s, output i stands at c = (i + 1/2) / s - 1/2, or at i (n - 1) / (o - 1) with align_corners;
        nearest reads cell floor(i / s); linear weighs the cells around max(c, 0), cubic the four around c. Where o = n,
        or o = 2 n for nearest, nearest and linear take o / n for the scale.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.arithmetic import exact, varies
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, windows_of
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import as_size, constant, is_tracing, static_size

MOST = 2**31
"""No axis is longer."""


CUBIC = -0.5
"""Free parameter of the cubic convolution kernel of antialiased resizing (the plain one has -0.75)."""


@dataclass(frozen=True)
class Axis:
    """How one axis is resized."""

    number: int
    size: Any
    """An int where it is fixed, else what the exporter knows it as."""
    output: Any
    """The same."""
    scale: float | Tensor | None
    """Output by size, as it was given, float64 of shape (1,) where it varies; None where it follows from the sizes."""

    @property
    def is_fixed(self) -> bool:
        """Whether a table can be computed outside the file."""
        return type(self.size) is int and type(self.output) is int

    @property
    def is_ratio_of_sizes(self) -> bool:
        """Whether the scale is known to be output / size exactly."""
        if self.scale is None:
            return True
        if isinstance(self.scale, Tensor):
            return False
        return self.scale.is_integer() or (self.is_fixed and bool(self.output == self.size * self.scale))


def resized_axes(input: Tensor, size: Any, scale_factor: Any, recompute: bool | None) -> list[Axis]:
    """Size and scale of each axis after the channels, as F.interpolate understands its arguments.

    Args:
        input: The argument of the rewrite's body.
        size: As for F.interpolate, as the others are.
        scale_factor: Output by input.
        recompute: Whether the scale is forgotten once the sizes are computed.
    """
    axes = []
    for place in range(input.dim() - 2):
        number = place + 2
        fixed = static_size(input, number)
        length = input.shape[number] if fixed is None else fixed
        if size is not None:
            axes.append(Axis(number, length, size[place] if isinstance(size, (tuple, list)) else size, None))
            continue
        scale = scale_factor[place] if isinstance(scale_factor, (tuple, list)) else scale_factor
        scale = exact(scale, input) if varies(scale) else float(scale)
        if fixed is not None and isinstance(scale, float):
            output = math.floor(fixed * scale)
        else:
            output = _scaled(input, number, scale)
        axes.append(Axis(number, length, output, None if recompute else scale))
    return axes


def errs_in_float32(input: Tensor, scale_factor: Any) -> bool:
    """Whether ONNX's Resize, which has scales in float32, is wrong at some size of an axis that varies.

    Args:
        input: The argument of the rewrite's body.
        scale_factor: As for F.interpolate.
    """
    places = range(input.dim() - 2)
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(places)
    return any(
        varies(scale) or (static_size(input, place + 2) is None and not _is_plain(float(scale)))
        for place, scale in zip(places, scales, strict=True)
    )


def _is_plain(scale: float) -> bool:
    """Whether float32 arithmetic with a scale errs at no size: whole numbers, halves of them, and 1/2, 1/4, 1/8 ..."""
    return (2 * scale).is_integer() or (math.frexp(scale)[0] == 0.5 and scale < 1)


def _scaled(x: Tensor, number: int, scale: float | Tensor) -> Any:
    if not is_tracing() and isinstance(scale, float) and _is_plain(scale):
        return torch.sym_int(x.shape[number] * scale)
    product = exact(x.shape[number], x) * scale
    return as_size(product.floor().long().reshape(()), 1, MOST)


def nearest_exact(input: Tensor, axes: list[Axis]) -> Tensor:
    """Reads the cells whose centres are nearest."""
    for axis in axes:
        if not _is_kept(axis):
            input = take(input, _nearest_table(axis, input), axis.number)
    return input


def _nearest_table(axis: Axis, like: Tensor) -> Tensor:
    if axis.is_fixed:
        step = np.float32(axis.size / axis.output if axis.scale is None else 1 / axis.scale)
        cells = np.floor((np.arange(axis.output, dtype=np.float32) + np.float32(0.5)) * step)
        return constant(np.minimum(cells, axis.size - 1).astype(np.int64), like=like, dtype=torch.int64)
    numbers = torch.arange(axis.output, device=like.device)
    if axis.scale is None:
        exact: Tensor = (2 * numbers + 1) * axis.size // (2 * axis.output)
        return exact
    cells = ((numbers.float() + 0.5) * _inverse(axis.scale, torch.float32)).floor().long()
    return torch.minimum(cells, _whole(axis.size, like) - 1)


def antialiased(input: Tensor, axes: list[Axis], mode: str, align_corners: bool) -> Tensor:
    """Weighs the cells of both axes of an image (N, C, H, W), the last axis first as torch does."""
    vertical, horizontal = axes
    x = input if _is_kept(horizontal) else input @ _weights(horizontal, mode, align_corners, input).transpose(0, 1)
    return x if _is_kept(vertical) else _weights(vertical, mode, align_corners, input) @ x


def _is_kept(axis: Axis) -> bool:
    return axis.is_fixed and axis.size == axis.output and axis.scale in (None, 1.0)


def _weights(axis: Axis, mode: str, align_corners: bool, like: Tensor) -> Tensor:
    """The matrix (output, size) whose product with an axis resizes it."""
    if axis.is_fixed:
        step = _step(axis, align_corners, max)
        matrix = _matrix(np.arange(axis.output) + 0.5, np.arange(axis.size) + 0.5, step, max(step, 1.0), mode)
        return constant(matrix, like=like)
    size, output = (_whole(value, like).to(like.dtype) for value in (axis.size, axis.output))
    scale = axis.scale.to(like.dtype) if isinstance(axis.scale, Tensor) else axis.scale
    step = _step(Axis(axis.number, size, output, scale), align_corners, lambda a, b: a.clamp(min=b))
    centres, cells = (torch.arange(n, device=like.device).to(like.dtype) + 0.5 for n in (axis.output, axis.size))
    support = step.clamp(min=1) if isinstance(step, Tensor) else max(step, 1.0)
    result: Tensor = _matrix(centres, cells, step, support, mode)
    return result


def _step(axis: Axis, align_corners: bool, at_least: Callable[[Any, int], Any]) -> Any:
    if align_corners:
        # A single output cell has a step of 0.
        alone = (axis.output <= 1) * 1
        return (axis.size - 1) / at_least(axis.output - 1, 1) * (1 - alone)
    return axis.size / axis.output if axis.scale is None else 1 / axis.scale


def _inverse(scale: float | Tensor, dtype: torch.dtype) -> Any:
    """What one output cell covers, rounded once."""
    return (1 / scale).to(dtype) if isinstance(scale, Tensor) else 1 / scale


def _matrix(centres: Any, cells: Any, step: Any, support: Any, mode: str) -> Any:
    """The normalised filter for each pair of an output and a cell; numpy arrays or tensors."""
    distance = abs(cells[None, :] - centres[:, None] * step) / support
    weights = _triangle(distance) if mode == "bilinear" else _cubic(distance)
    return weights / weights.sum(1)[:, None]


def _triangle(distance: Any) -> Any:
    return (1 - distance).clip(0)


def _cubic(distance: Any) -> Any:
    near = ((CUBIC + 2) * distance - (CUBIC + 3)) * distance * distance + 1
    far = ((distance - 5) * distance + 8) * distance * CUBIC - 4 * CUBIC
    return near * (distance <= 1) + far * ((distance > 1) & (distance < 2))


def _whole(value: Any, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=torch.int64, device=like.device)


PLAIN_CUBIC = -0.75
"""Free parameter of the cubic convolution kernel."""


def resized_by_scale(input: Tensor, axes: list[Axis], mode: str, align_corners: bool) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W), one axis after the other.

    Args:
        input: Of floating-point type, except for mode nearest.
        axes: Their sizes may vary.
        mode: nearest, linear, bilinear, trilinear or bicubic.
        align_corners: As for F.interpolate.
    """
    for axis in axes:
        if mode == "nearest":
            input = take(input, _nearest_by_scale(axis, input), axis.number)
        else:
            weigh = _cubic_weights if mode == "bicubic" else _linear_weights
            input = _weighed(input, axis, *weigh(_place(axis, align_corners, input), axis, input))
    return input


def _numbers(axis: Axis, like: Tensor) -> Tensor:
    return torch.arange(axis.output, device=like.device).to(_dtype(like))


def _dtype(like: Tensor) -> torch.dtype:
    """What torch computes places in."""
    return torch.float64 if like.dtype == torch.float64 else torch.float32


def _last(axis: Axis, like: Tensor) -> Tensor:
    return _size(axis.size, like) - 1


def _size(size: Any, like: Tensor) -> Tensor:
    return torch.full((1,), size, dtype=torch.int64, device=like.device)


def _at_least(numbers: Tensor, least: int) -> Tensor:
    # Before opset 12, Clip takes float32 only, and Max no integers.
    return torch.maximum(numbers, torch.full_like(numbers, least))


def _nearest_by_scale(axis: Axis, like: Tensor) -> Tensor:
    numbers, last, output = _numbers(axis, like), _last(axis, like), _size(axis.output, like)
    cells = torch.minimum((numbers * _kept_step(axis, like)).floor().long(), last)
    cells = torch.where(output == 2 * (last + 1), (numbers / 2).floor().long(), cells)
    return torch.where(output == last + 1, numbers.long(), cells)


def _place(axis: Axis, align_corners: bool, like: Tensor) -> Tensor:
    """Where each output stands, in cells (o,)."""
    numbers = _numbers(axis, like)
    if align_corners:
        # A single output has place 0 whatever the step.
        last, apart = (size.to(numbers.dtype) for size in (_last(axis, like), _size(axis.output, like) - 1))
        return numbers * (last / _at_least(apart, 1))
    return (numbers + 0.5) * _kept_step(axis, like) - 0.5


def _kept_step(axis: Axis, like: Tensor) -> Tensor:
    """How many cells one output is from the next."""
    if axis.scale is None:
        return _size(axis.size, like).to(_dtype(like)) / _size(axis.output, like).to(_dtype(like))
    return (1 / exact(axis.scale, like)).to(_dtype(like))


def _linear_weights(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last = _last(axis, like)
    place = torch.where(_size(axis.output, like) == last + 1, _numbers(axis, like), _at_least(place, 0))
    cell = torch.minimum(place.floor().long(), last)
    rest = place - cell
    return torch.minimum(torch.stack((cell, cell + 1), 1), last), torch.stack((1 - rest, rest), 1)


def _cubic_weights(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last, cell = _last(axis, like).to(place.dtype), place.floor()
    rest = place - cell
    cells = torch.stack((cell - 1, cell, cell + 1, cell + 2), 1)
    far, near = (_outer(distance) for distance in (rest + 1, 2 - rest))
    weights = torch.stack((far, _inner(rest), _inner(1 - rest), near), 1)
    return torch.minimum(_at_least(cells, 0), last).long(), weights


def _inner(distance: Tensor) -> Tensor:
    return ((PLAIN_CUBIC + 2) * distance - (PLAIN_CUBIC + 3)) * distance * distance + 1


def _outer(distance: Tensor) -> Tensor:
    return ((distance - 5) * distance + 8) * distance * PLAIN_CUBIC - 4 * PLAIN_CUBIC


def _weighed(x: Tensor, axis: Axis, cells: Tensor, weights: Tensor) -> Tensor:
    """Sums of cells (o, k) of an axis with weights (o, k)."""
    after = x.dim() - axis.number - 1
    found = take(x, cells, axis.number) * weights.to(x.dtype).reshape(*weights.shape, *[1] * after)
    return found.sum(axis.number + 1)


@decomposition(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def interpolate_antialias_by_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock dynamo drops align_corners, and the scale for the sizes' ratio.

    Declines: integers, which torch rounds in ways of its own.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if not antialias:
        return NotImplemented
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if not align_corners and all(axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented
    if not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}; convert it first, e.g. x.float()")
    return antialiased(input, axes, mode, bool(align_corners))


@decomposition(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def interpolate_antialias_to_matmul(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, H, W), bilinear or bicubic; stock TorchScript has no symbolic for it.

    Declines: integers, which torch rounds in ways of its own.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if not antialias:
        return NotImplemented
    if not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}")
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    return antialiased(input, axes, mode, bool(align_corners))


_POOLS = {1: nn.functional.avg_pool1d, 2: nn.functional.avg_pool2d, 3: nn.functional.avg_pool3d}


@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_area_to_pool(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by averaging; stock TorchScript errs or refuses where the output does not divide the input.

    Stock dynamo errs at the sizes whose product with a scale such as 0.7 float32 takes for a whole number.

    Math: area interpolation is adaptive average pooling; torch_onnx_compat.functional.adaptive_avg_pool.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; torch/nn/functional.py
    """
    if mode != "area" or align_corners is not None or antialias or input.dim() not in (3, 4, 5):
        return NotImplemented
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    outputs = [axis.output for axis in axes]
    windows = windows_of(input, outputs)
    if windows is not None and input.is_floating_point() and input.itemsize <= 4:  # onnxruntime pools no float64
        return _POOLS[len(windows)](input, windows)
    if is_single_cell(outputs):
        return input.mean(tuple(range(2, input.dim())), keepdim=True)
    return adaptive_avg_pool(input, outputs)


@decomposition(nn.functional.interpolate, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock TorchScript has no symbolic for this mode.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if mode != "nearest-exact":
        return NotImplemented
    return nearest_exact(input, resized_axes(input, size, scale_factor, recompute_scale_factor))


@decomposition(nn.functional.interpolate, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def interpolate_nearest_exact_by_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W); stock dynamo rounds where cells begin in another way.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if mode != "nearest-exact" or scale_factor is None or recompute_scale_factor:
        return NotImplemented
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if all(axis.is_fixed or axis.is_ratio_of_sizes for axis in axes):
        return NotImplemented
    return nearest_exact(input, axes)


@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_recomputed_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by a scale; a trace freezes the size where it varies, dynamo has its floor in float32.

    Math: an axis of n cells is resized to floor(n * scale), and the scale forgotten.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if not recompute_scale_factor or scale_factor is None or antialias or mode == "nearest-exact":
        return NotImplemented
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if mode == "nearest" and errs_in_float32(input, scale_factor):
        return resized_by_scale(input, axes, mode, False)
    outputs = [axis.output for axis in axes]
    return nn.functional.interpolate(input, outputs, None, mode, align_corners)


# Resize has its scales, and the floor of size times scale, in float32; eager torch in float64.
@decomposition(nn.functional.interpolate, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def interpolate_varying_scale(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes by a scale that the file computes, or such as 0.7, with which Resize is off at some sizes.

    Of 196 heights, a stock file is wrong at 167 for mode nearest and scale 0.3, at three for bilinear and 0.7
    (benchmarks/results/resize.md).

    Declines: integers, except by mode nearest.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
    """
    if scale_factor is None or recompute_scale_factor or antialias or mode in ("nearest-exact", "area"):
        return NotImplemented
    if not errs_in_float32(input, scale_factor):
        return NotImplemented
    axes = resized_axes(input, size, scale_factor, recompute_scale_factor)
    if mode != "nearest" and not input.is_floating_point():
        decline(f"the image must be of floating-point type, got {input.dtype}; convert it first, e.g. x.float()")
    return resized_by_scale(input, axes, mode, bool(align_corners))
