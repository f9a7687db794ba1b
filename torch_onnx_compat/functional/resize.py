"""interpolate by tables and matrices: nearest-exact, and antialiased bilinear and bicubic.

Math:   s = n / o, or the inverse of the scale that was given, is what one output cell covers of an axis of n cells;
        with align_corners it is (n - 1) / (o - 1).
        nearest-exact: output i is cell floor((i + 1/2) s).
        Antialiased: output i is the mean of all cells j, weighted by the filter at (j + 1/2 - (i + 1/2) s) / max(s, 1).
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h,
        ATen/native/cpu/UpSampleKernel.cpp
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.arithmetic import exact, varies
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
