"""grid_sample as gathers, for opsets and engines without GridSample.

Math:   a coordinate in [-1, 1] becomes a position in cells along each axis, and a position becomes taps: one (nearest),
        two (linear) or four (cubic), each a cell's index and a weight. A sample is the sum of cell times weights over
        all combinations of the axes' taps. A tap outside a zero-padded image reads the nearest cell with weight 0.
Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html; for rounding, reflection and
        NaN, ATen/native/cpu/GridSamplerKernel.cpp (4-D) and ATen/native/GridSampler.h (5-D)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_onnx_compat.tracing import constant, size_tensor, static_size

Mode = Literal["bilinear", "nearest", "bicubic"]
Padding = Literal["zeros", "border", "reflection"]
MODES: tuple[Mode, ...] = ("bilinear", "nearest", "bicubic")
PADDINGS: tuple[Padding, ...] = ("zeros", "border", "reflection")
"""Both in the order of torch's enumerations, as torch.grid_sampler takes them."""

Number: TypeAlias = int | Tensor
"""A size: an int where it is fixed, a tensor of shape () where it may vary."""

ROWS_FROM = 32
"""Channels from which reading whole rows of channels beats GatherElements in onnxruntime (benchmarks/rewrites.py)."""

_FAR_OUTSIDE = -9.0
"""A position none of whose taps lies in the image."""

_CUBIC = -0.75
"""Free parameter of torch's cubic convolution kernel."""


class _Tap(NamedTuple):
    index: Tensor
    weight: Tensor | None


@dataclass(frozen=True)
class _Axis:
    """How positions along one axis of the image become taps."""

    size: Number
    mode: Mode
    padding: Padding
    align_corners: bool
    volumetric: bool

    def taps(self, coordinate: Tensor) -> list[_Tap]:
        position = self._position(coordinate)
        if self.mode == "nearest":
            return [self._tap(torch.round(position), None)]
        cell = torch.floor(position)
        fraction = position - cell
        if self.mode == "bilinear":
            return [self._tap(cell, 1 - fraction), self._tap(cell + 1, fraction)]
        return [self._tap(cell + k, _cubic_weight(fraction, k)) for k in (-1, 0, 1, 2)]

    def _position(self, coordinate: Tensor) -> Tensor:
        # In torch's order of operations, so that halves round to the same cell.
        if self.align_corners:
            position = (coordinate + 1) * ((self.size - 1) / 2)
        else:
            position = (coordinate + 1) * (self.size / 2) - 0.5
        return position if self.padding == "zeros" or self.mode == "bicubic" else self._inside(position)

    def _tap(self, cell: Tensor, weight: Tensor | None) -> _Tap:
        if self.padding != "zeros":
            # Positions are inside already, except that a cubic kernel reaches out, and a linear one past the last cell.
            if self.mode == "bicubic":
                cell = self._inside(cell)
            elif self.mode == "bilinear":
                cell = self._clamp(cell)
            return _Tap(cell.to(torch.int64), weight)
        cell = _replace_nan(cell, _FAR_OUTSIDE)
        index = self._clamp(cell)
        inside = index == cell
        if weight is None or not self.volumetric:
            kept = inside.to(cell.dtype)
            weight = kept if weight is None else weight * kept
        else:
            weight = torch.where(inside, weight, constant(0, weight))
        return _Tap(index.to(torch.int64), weight)

    def _inside(self, position: Tensor) -> Tensor:
        if self.padding == "reflection":
            position = self._reflect(position)
        # Torch takes NaN for the first cell of an image and for the last one of a volume.
        position = _replace_nan(position, self.size - 1 if self.volumetric else 0)
        return self._clamp(position)

    def _reflect(self, position: Tensor) -> Tensor:
        if self.align_corners:
            distance, period = position.abs(), 2 * (self.size - 1)
        else:
            distance, period = (position + 0.5).abs(), 2 * self.size
        if isinstance(period, int) and period == 0:
            return torch.zeros_like(position)
        distance = distance - torch.floor(distance / period) * period
        folded = torch.minimum(distance, period - distance)
        return folded if self.align_corners else folded - 0.5

    def _clamp(self, position: Tensor) -> Tensor:
        if isinstance(self.size, int):
            return position.clamp(0, self.size - 1)
        return torch.minimum(position.clamp(min=0), self.size - 1)
