"""Resizing of the axes of images by tables of cells and weights, by matrices where it is antialiased.

Math:   an axis of n cells is resized to o outputs by the scale s, the one that was given or o / n. Output i stands at
        c = (i + 1/2) / s - 1/2, or at i (n - 1) / (o - 1) with align_corners.
        nearest reads cell floor(i / s), nearest-exact cell floor((i + 1/2) / s); linear weighs the two cells around
        max(c, 0), cubic the four around c. Where o = n, linear takes 1 for s; so does nearest by its kernel for small
        images, and those with channels last, which takes 2 where o = 2 n.
        Antialiased, output i is the mean of all cells j, weighted by the filter at (j + 1/2 - (i + 1/2) t) / max(t, 1),
        where t is 1 / s, or (n - 1) / (o - 1) with align_corners. Where o = n, the axis is skipped whatever s is.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h,
        ATen/native/cpu/UpSampleKernel.cpp
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.functional import cubic
from torch_onnx_compat.functional.arithmetic import exact
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size

SMALL = 128
"""Height and width of an output, added up, to which torch's kernel of mode nearest goes by pixels."""


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
    def is_kept(self) -> bool:
        """Whether the size is known to stay."""
        return self.is_fixed and bool(self.size == self.output)

    @property
    def is_unchanged(self) -> bool:
        """Whether every output is known to be the cell of its number, in mode nearest-exact too."""
        return self.is_kept and self.scale in (None, 1.0)


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
    if not horizontal.is_kept:
        x = x @ _filters(horizontal, mode, align_corners, input).transpose(0, 1)
    return x if vertical.is_kept else _filters(vertical, mode, align_corners, input) @ x


def _filters(axis: Axis, mode: str, align_corners: bool, like: Tensor) -> Any:
    """The matrix (output, size) whose product with an axis resizes it."""
    if axis.is_fixed:
        step = _covered(axis, align_corners, max)
        matrix = _matrix(np.arange(axis.output) + 0.5, np.arange(axis.size) + 0.5, step, max(step, 1.0), mode)
        return constant(matrix, like=like)
    size, output = (_count(value, like).to(like.dtype) for value in (axis.size, axis.output))
    scale = axis.scale.to(like.dtype) if isinstance(axis.scale, Tensor) else axis.scale
    step = _covered(Axis(axis.number, size, output, scale), align_corners, lambda a, b: a.clamp(min=b))
    if scale is not None and not align_corners:
        step = torch.where(output == size, torch.ones_like(size), step)
    centres, cells = (torch.arange(n, device=like.device).to(like.dtype) + 0.5 for n in (axis.output, axis.size))
    return _matrix(centres, cells, step, step.clamp(min=1), mode)


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
