"""interpolate where a stock file fails or errs: nearest-exact, area, antialiased, by scales that float32 rounds.

Math:   an axis of n cells is resized to o outputs by the scale s, the one that was given or o / n. Output i stands at
        c = (i + 1/2) / s - 1/2, or at i (n - 1) / (o - 1) with align_corners.
        nearest reads cell floor(i / s), nearest-exact cell floor((i + 1/2) / s); linear weighs the two cells around
        max(c, 0), cubic the four around c. Where o = n, linear takes 1 for s; so does nearest by its kernel for small
        images, and those with channels last, which takes 2 where o = 2 n.
        Antialiased, output i is the mean of all cells j, weighted by the filter at (j + 1/2 - (i + 1/2) t) / max(t, 1),
        where t is 1 / s, or (n - 1) / (o - 1) with align_corners.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h,
        ATen/native/cpu/UpSampleKernel.cpp
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional import cubic
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, windows_of
from torch_onnx_compat.functional.arithmetic import exact, varies
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import as_size, constant, is_tracing, multiple_of, static_size

MOST = 2**31
"""No axis is longer."""

SMALL = 128
"""Height and width of an output, added up, to which torch's kernel of mode nearest goes by pixels."""

EXACT_MULTIPLES = range(1, 33)
"""Whole numbers k for which floor(i * (1 / k)) in float32 is i // k; it is not for 41."""


# What a call asks for


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

    @property
    def is_near_ratio(self) -> bool:
        """Whether the kernels of mode nearest read other cells: the sizes have a ratio of 1 or 2, which is no scale."""
        return self.is_fixed and self.output in (self.size, 2 * self.size) and not self.is_ratio_of_sizes

    @property
    def is_unchanged(self) -> bool:
        """Whether every output is known to be the cell of its number."""
        return self.is_fixed and self.size == self.output and self.scale in (None, 1.0)


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


def _count(size: Any, like: Tensor) -> Tensor:
    return torch.full((1,), size, dtype=torch.int64, device=like.device)


# nearest-exact


def resize_nearest_exact(input: Tensor, axes: list[Axis]) -> Tensor:
    """Reads the cells whose centres are nearest."""
    for axis in axes:
        if not axis.is_unchanged:
            input = take(input, _nearest_exact_cells(axis, input), axis.number)
    return input


def _nearest_exact_cells(axis: Axis, like: Tensor) -> Tensor:
    if axis.is_fixed:
        step = np.float32(axis.size / axis.output if axis.scale is None else 1 / axis.scale)
        cells = np.floor((np.arange(axis.output, dtype=np.float32) + np.float32(0.5)) * step)
        return constant(np.minimum(cells, axis.size - 1).astype(np.int64), like=like, dtype=torch.int64)
    numbers = torch.arange(axis.output, device=like.device)
    # As torch does, round what one output covers to float32, and only once: 6.5 * (106 / 13) is less than 53 then.
    covered: Any
    if axis.scale is None:
        covered = _count(axis.size, like).float() / _count(axis.output, like).float()
    else:
        covered = (1 / axis.scale).to(torch.float32) if isinstance(axis.scale, Tensor) else 1 / axis.scale
    return torch.minimum(((numbers.float() + 0.5) * covered).floor().long(), _count(axis.size, like) - 1)


# Antialiased: a product with a matrix for each axis


def resize_antialiased(input: Tensor, axes: list[Axis], mode: str, align_corners: bool) -> Tensor:
    """Weighs the cells of both axes of an image (N, C, H, W), the last axis first as torch does."""
    vertical, horizontal = axes
    x = input
    if not horizontal.is_unchanged:
        x = x @ _filters(horizontal, mode, align_corners, input).transpose(0, 1)
    return x if vertical.is_unchanged else _filters(vertical, mode, align_corners, input) @ x


def _filters(axis: Axis, mode: str, align_corners: bool, like: Tensor) -> Any:
    """The matrix (output, size) whose product with an axis resizes it."""
    if axis.is_fixed:
        step = _covered(axis, align_corners, max)
        matrix = _matrix(np.arange(axis.output) + 0.5, np.arange(axis.size) + 0.5, step, max(step, 1.0), mode)
        return constant(matrix, like=like)
    size, output = (_count(value, like).to(like.dtype) for value in (axis.size, axis.output))
    scale = axis.scale.to(like.dtype) if isinstance(axis.scale, Tensor) else axis.scale
    step = _covered(Axis(axis.number, size, output, scale), align_corners, lambda a, b: a.clamp(min=b))
    centres, cells = (torch.arange(n, device=like.device).to(like.dtype) + 0.5 for n in (axis.output, axis.size))
    support = step.clamp(min=1) if isinstance(step, Tensor) else max(step, 1.0)
    return _matrix(centres, cells, step, support, mode)


def _covered(axis: Axis, align_corners: bool, at_least: Callable[[Any, int], Any]) -> Any:
    """How many cells one output covers."""
    if align_corners:
        # A single output cell has a step of 0.
        alone = (axis.output <= 1) * 1
        return (axis.size - 1) / at_least(axis.output - 1, 1) * (1 - alone)
    return axis.size / axis.output if axis.scale is None else 1 / axis.scale


def _matrix(centres: Any, cells: Any, step: Any, support: Any, mode: str) -> Any:
    """The normalised filter for each pair of an output and a cell; numpy arrays or tensors."""
    distance = abs(cells[None, :] - centres[:, None] * step) / support
    weights = (1 - distance).clip(0) if mode == "bilinear" else _cubic_filter(distance)
    return weights / weights.sum(1)[:, None]


def _cubic_filter(distance: Any) -> Any:
    near, far = (weight(distance, cubic.ANTIALIASED) for weight in (cubic.inner, cubic.outer))
    return near * (distance <= 1) + far * ((distance > 1) & (distance < 2))


# By a scale: tables of cells, and weights


def resize_by_scale(input: Tensor, axes: list[Axis], mode: str, align_corners: bool) -> Tensor:
    """Resizes (N, C, L), (N, C, H, W) or (N, C, D, H, W), one axis after the other.

    Args:
        input: Of floating-point type, except for mode nearest.
        axes: Their sizes may vary.
        mode: nearest, linear, bilinear, trilinear or bicubic.
        align_corners: As for F.interpolate.
    """
    by_pixels = mode == "nearest" and _goes_by_pixels(input, axes)
    for axis in axes:
        if mode == "nearest":
            input = take(input, _nearest_cells(axis, input, by_pixels), axis.number)
        else:
            weights = _cubic_weights if mode == "bicubic" else _linear_weights
            input = _weigh(input, axis, *weights(_place(axis, align_corners, input), axis, input))
    return input


def _numbers(axis: Axis, like: Tensor) -> Tensor:
    return torch.arange(axis.output, device=like.device).to(_dtype(like))


def _dtype(like: Tensor) -> torch.dtype:
    """What torch computes places in."""
    return torch.float64 if like.dtype == torch.float64 else torch.float32


def _last(axis: Axis, like: Tensor) -> Tensor:
    return _count(axis.size, like) - 1


def _at_least(numbers: Tensor, least: int) -> Tensor:
    # Before opset 12, Clip takes float32 only, and Max no integers.
    return torch.maximum(numbers, torch.full_like(numbers, least))


def _goes_by_pixels(x: Tensor, axes: list[Axis]) -> Any:
    """Whether torch takes the kernel of nearest that goes by pixels; True, False, or of shape (1,) if sizes decide."""
    channels = static_size(x, 1)
    last = x.stride(1), x.stride(-1)
    if channels is not None and channels > 3 and all(type(stride) is int for stride in last) and last == (1, channels):
        return len(axes) > 1
    if len(axes) != 2:
        return False
    outputs = [axis.output for axis in axes]
    if all(type(output) is int for output in outputs):
        return sum(outputs) <= SMALL
    vertical, horizontal = (_count(output, x) for output in outputs)
    return vertical + horizontal <= SMALL


def _nearest_cells(axis: Axis, like: Tensor, by_pixels: Any) -> Tensor:
    """The cell that each output reads (o,).

    The two kernels read others where the scale is not the ratio of the sizes, and in float64.
    """
    by_lines = _cells_before(axis, like, _dtype(like))
    if by_pixels is False or (axis.is_ratio_of_sizes and like.dtype != torch.float64):
        return by_lines
    size, output, numbers = _count(axis.size, like), _count(axis.output, like), _numbers(axis, like)
    cells = torch.where(output == 2 * size, (numbers / 2).floor().long(), _cells_before(axis, like, torch.float32))
    cells = torch.where(output == size, numbers.long(), cells)
    return cells if by_pixels is True else torch.where(by_pixels, cells, by_lines)


def _cells_before(axis: Axis, like: Tensor, dtype: torch.dtype) -> Tensor:
    """The cells in which the outputs begin, computed in a type; torch takes the floor in float32."""
    begins = torch.arange(axis.output, device=like.device).to(dtype) * _step(axis, like, dtype)
    return torch.minimum(begins.to(torch.float32).floor().long(), _last(axis, like))


def _place(axis: Axis, align_corners: bool, like: Tensor) -> Tensor:
    """Where each output stands, in cells (o,)."""
    numbers = _numbers(axis, like)
    if align_corners:
        # A single output has place 0 whatever the step.
        last, apart = (size.to(numbers.dtype) for size in (_last(axis, like), _count(axis.output, like) - 1))
        return numbers * (last / _at_least(apart, 1))
    return (numbers + 0.5) * _step(axis, like, _dtype(like)) - 0.5


def _step(axis: Axis, like: Tensor, dtype: torch.dtype) -> Tensor:
    """How many cells one output is from the next."""
    if axis.scale is None:
        return _count(axis.size, like).to(dtype) / _count(axis.output, like).to(dtype)
    return (1 / exact(axis.scale, like)).to(dtype)


def _linear_weights(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last = _last(axis, like)
    place = torch.where(_count(axis.output, like) == last + 1, _numbers(axis, like), _at_least(place, 0))
    cell = torch.minimum(place.floor().long(), last)
    rest = place - cell
    return torch.minimum(torch.stack((cell, cell + 1), 1), last), torch.stack((1 - rest, rest), 1)


def _cubic_weights(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last, cell = _last(axis, like).to(place.dtype), place.floor()
    rest = place - cell
    cells = torch.stack((cell - 1, cell, cell + 1, cell + 2), 1)
    first, fourth = (cubic.outer(distance, cubic.PLAIN) for distance in (rest + 1, 2 - rest))
    second, third = (cubic.inner(distance, cubic.PLAIN) for distance in (rest, 1 - rest))
    return torch.minimum(_at_least(cells, 0), last).long(), torch.stack((first, second, third, fourth), 1)


def _weigh(x: Tensor, axis: Axis, cells: Tensor, weights: Tensor) -> Tensor:
    """Sums of cells (o, k) of an axis with weights (o, k)."""
    after = x.dim() - axis.number - 1
    values = take(x, cells, axis.number) * weights.to(x.dtype).reshape(*weights.shape, *[1] * after)
    return values.sum(axis.number + 1)


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
