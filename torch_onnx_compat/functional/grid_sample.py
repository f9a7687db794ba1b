"""grid_sample as gathers, for opsets and engines without GridSample.

Math:   a coordinate in [-1, 1] becomes a position in cells along each axis, and a position becomes taps: one (nearest),
        two (linear) or four (cubic), each a cell's index and a weight. A sample is the sum of cell times weights over
        all combinations of the axes' taps. A tap outside a zero-padded image reads the closest cell with weight 0.
Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html; for rounding, reflection and
        NaN, ATen/native/cpu/GridSamplerKernel.cpp (images) and ATen/native/GridSampler.h (volumes)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, product
from operator import add, mul
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import embedding

from torch_onnx_compat.tracing import constant, size_tensor, static_size

Mode = Literal["bilinear", "nearest", "bicubic"]
Padding = Literal["zeros", "border", "reflection"]
MODES: tuple[Mode, ...] = ("bilinear", "nearest", "bicubic")
PADDINGS: tuple[Padding, ...] = ("zeros", "border", "reflection")
"""Both in the order of torch's enumerations, which torch.grid_sampler takes."""

ROWS_FROM = 40
"""Channels from which reading rows of channels beats GatherElements in onnxruntime (benchmarks/rewrites.py)."""

CUBIC = -0.75
"""Free parameter of torch's cubic convolution kernel."""

FAR_OUTSIDE = -9
"""A position none of whose taps lies in the image."""

Size: TypeAlias = "int | Tensor"
"""Of an axis, in cells: an int where it is fixed, else an int64 tensor of shape ()."""


class Tap(NamedTuple):
    """For each sample, one of the cells along an axis that it is made of."""

    cell: Tensor
    """Its number, int64."""
    weight: Tensor | None
    """None means 1."""


def grid_sample(image: Tensor, grid: Tensor, mode: Mode, padding: Padding, align_corners: bool) -> Tensor:
    """Samples an image (N, C, H, W) or volume (N, C, D, H, W) at the coordinates of a grid.

    Args:
        image: What is sampled. Cells may be NaN or infinite; of an infinite cell at the border may come NaN where eager
            torch has infinity.
        grid: Coordinates in [-1, 1], x first: (N, P, Q, 2), for a volume (N, O, P, Q, 3).
        mode: Interpolation; "bilinear" means trilinear for a volume, "bicubic" is for images only.
        padding: What lies outside.
        align_corners: Whether -1 and 1 are the centres of the outermost cells, rather than their outer edges.

    Returns:
        (N, C, P, Q), for a volume (N, C, O, P, Q).
    """
    spatial = image.dim() - 2
    channels = static_size(image, 1)
    by_rows = channels is not None and channels >= ROWS_FROM
    # float16 cannot tell the cells of an image wider than 2048 apart.
    coordinates = grid.float() if grid.dtype in (torch.float16, torch.bfloat16) else grid
    if not by_rows:
        coordinates = coordinates.flatten(1, -2).unsqueeze(1)
    sizes = [_size(image, axis) for axis in range(-1, -1 - spatial, -1)]
    axes = [_Axis(size, mode, padding, align_corners, volume=spatial == 3) for size in sizes]
    taps = [axis.taps(coordinates[..., k]) for k, axis in enumerate(axes)]

    samples = _read_rows(image, taps, sizes) if by_rows else _read_elements(image, taps, sizes)
    if padding == "zeros":
        # A sample outside has weights of 0, but 0 times a cell that is infinite or NaN is not 0.
        outside = torch.eq(_total_weight(taps), 0)
        samples = torch.where(outside.unsqueeze(-1) if by_rows else outside, constant(0, samples), samples)
    if by_rows:
        samples = samples.permute(0, spatial + 1, *range(1, spatial + 1))
    else:
        samples = samples.reshape(image.shape[0], image.shape[1], *grid.shape[1:-1])
    return samples.to(image.dtype) if samples.dtype != image.dtype else samples


def _read_elements(image: Tensor, taps: list[list[Tap]], sizes: list[Size]) -> Tensor:
    """Samples (N, C, P) by GatherElements; the taps' tensors are (N, 1, P)."""
    table = image.flatten(2)
    *strides, slowest = _strides(sizes)
    # The slowest axis' stride is written once a channel: its product spreads the indices over the channels.
    channels = static_size(image, 1)
    if channels is None or not isinstance(slowest, int):
        slowest = slowest * torch.ones((1, image.shape[1], 1), dtype=torch.int64, device=image.device)
    else:
        slowest = constant([[[slowest]] * channels], image, torch.int64)
    parts = []
    for cell, weight in _combinations(taps, [*strides, slowest]):
        cells = table.gather(2, cell)
        parts.append(cells if weight is None else cells * weight)
    return reduce(add, parts)


def _read_rows(image: Tensor, taps: list[list[Tap]], sizes: list[Size]) -> Tensor:
    """Samples (N, P, Q, C) by Gather of whole rows of channels; the taps' tensors are (N, P, Q)."""
    spatial = len(sizes)
    table = image.permute(0, *range(2, spatial + 2), 1).reshape(-1, image.shape[1])
    *fast, slowest = taps
    if static_size(image, 0) != 1:
        # The images of the batch lie one below the other, as if the slowest axis went on through all of them.
        image_number = torch.arange(image.shape[0], device=image.device).reshape(-1, *[1] * spatial)
        slowest = [tap._replace(cell=tap.cell + image_number * sizes[-1]) for tap in slowest]
    parts = []
    for cell, weight in _combinations([*fast, slowest], _strides(sizes)):
        cells = embedding(cell, table)
        parts.append(cells if weight is None else cells * weight.unsqueeze(-1))
    return reduce(add, parts)


def _strides(sizes: list[Size]) -> list[Size]:
    """Cells of the flattened image from one index of an axis to the next, for all axes but the first, fastest first."""
    return list(accumulate(sizes[:-1], mul))


def _combinations(taps: list[list[Tap]], strides: list[Size]) -> Iterator[Tap]:
    """All combinations of the axes' taps, as cells of the flattened image."""
    slower = [
        [tap._replace(cell=tap.cell * stride) for tap in axis] for axis, stride in zip(taps[1:], strides, strict=True)
    ]
    for combination in product(taps[0], *slower):
        weights = [tap.weight for tap in combination if tap.weight is not None]
        yield Tap(reduce(add, (tap.cell for tap in combination)), reduce(mul, weights) if weights else None)


def _total_weight(taps: list[list[Tap]]) -> Tensor:
    return reduce(mul, [reduce(add, [tap.weight for tap in axis if tap.weight is not None]) for axis in taps])


@dataclass(frozen=True)
class _Axis:
    """How coordinates along one axis become taps."""

    size: Size
    mode: Mode
    padding: Padding
    align_corners: bool
    volume: bool

    def taps(self, coordinate: Tensor) -> list[Tap]:
        # In torch's order of operations, so that halves round to the same cell.
        if self.align_corners:
            position = (coordinate + 1) * ((self.size - 1) / 2)
        else:
            position = (coordinate + 1) * (self.size / 2) - 0.5
        if self.padding != "zeros" and self.mode != "bicubic":
            position = self._folded(position)
        if self.mode == "nearest":
            return [self._tap(self._number(torch.round(position)), None)]
        first = torch.floor(position)
        fraction = position - first
        first = self._number(first)
        if self.mode == "bilinear":
            return [self._tap(first, 1 - fraction), self._tap(first + 1, fraction)]
        return [self._tap(first + k, _cubic_weight(fraction, k)) for k in (-1, 0, 1, 2)]

    def _tap(self, cell: Tensor, weight: Tensor | None) -> Tap:
        if self.padding != "zeros":
            # Folded positions have taps inside, but for a cubic kernel's and a linear one's second, whose weight is 0.
            cell = self._folded(cell) if self.mode == "bicubic" else self._clamped(cell)
            return Tap(cell.to(torch.int64), weight)
        index = self._clamped(cell)
        inside = index == cell
        if weight is None:
            weight = inside.to(cell.dtype)
        elif self.volume:
            weight = torch.where(inside, weight, constant(0, weight))
        else:
            weight = weight * inside.to(weight.dtype)  # keeps the NaN that torch answers a NaN with in an image
        return Tap(index.to(torch.int64), weight)

    def _number(self, cell: Tensor) -> Tensor:
        """The cell's number, which is never NaN: that must not become an index."""
        return _above(cell, FAR_OUTSIDE) if self.padding == "zeros" else cell

    def _folded(self, position: Tensor) -> Tensor:
        """Brings positions into the image as border and reflection padding do."""
        if self.padding == "reflection":
            position = self._reflected(position)
        if not self.volume:
            return self._clamped(_above(position, 0))
        last = _tensor(self.size - 1, position)
        return torch.where(position < last, position, last).clamp(min=0)  # NaN becomes the last cell

    def _reflected(self, position: Tensor) -> Tensor:
        edge = 0.0 if self.align_corners else 0.5
        period = 2 * (self.size - 1 if self.align_corners else self.size)
        if isinstance(period, int) and period == 0:
            return torch.zeros_like(position)
        distance = (position + edge).abs() if edge else position.abs()
        distance = distance - torch.floor(distance / period) * period
        folded = torch.minimum(distance, period - distance)
        return folded - edge if edge else folded

    def _clamped(self, position: Tensor) -> Tensor:
        if isinstance(self.size, int):
            return position.clamp(0, self.size - 1)
        return torch.minimum(position.clamp(min=0), _tensor(self.size - 1, position))


def _cubic_weight(fraction: Tensor, k: int) -> Tensor:
    """Weight of the cell k to the right of the one that holds the position."""
    distance = fraction - k if k <= 0 else k - fraction
    if k in (0, 1):
        return ((CUBIC + 2) * distance - (CUBIC + 3)) * distance * distance + 1
    return ((CUBIC * distance - 5 * CUBIC) * distance + 8 * CUBIC) * distance - 4 * CUBIC


def _above(position: Tensor, least: int) -> Tensor:
    """At least so much, also where the position is NaN: a comparison with NaN is false."""
    return torch.where(position > least, position, constant(least, position))


def _size(image: Tensor, axis: int) -> Size:
    known = static_size(image, axis)
    return size_tensor(image, axis) if known is None else known


def _tensor(size: Size, like: Tensor) -> Tensor:
    return constant(size, like) if isinstance(size, int) else size.to(like.dtype)
