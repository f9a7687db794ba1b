"""grid_sample and affine_grid, of images and of volumes.

Math:   of an axis of n cells, cell i has the coordinate (2 i + 1 - n) / d, with d = n or, where -1 and 1 are the
        centres of the outermost cells, d = max(n - 1, 1). A point of an affine grid is theta[:, -1] plus the sum over
        the axes of coordinate * column of theta.
        grid_sample turns a coordinate into a position in cells along each axis, and the position into taps: one
        (nearest), two (linear) or four (cubic), each of which is a cell's index and a weight. A sample is the sum of
        cell times weights over all combinations of the axes' taps. With zeros for padding, a tap outside the image
        reads the closest cell with weight 0.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html;
        https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html; for rounding, reflection
        and NaN, ATen/native/cpu/GridSamplerKernel.cpp (images) and ATen/native/GridSampler.h (volumes)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, product
from operator import add, mul
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.functional import cubic
from torch_onnx_compat.tracing import constant, size_tensor, static_size

MODES = ("bilinear", "nearest", "bicubic")
"""In the order of torch's enumeration, by whose numbers torch.grid_sampler names them; GridSample's before opset 20."""

MODES_20 = ("linear", "nearest", "cubic")
"""The same, as GridSample names them from opset 20 on."""

PADDINGS = ("zeros", "border", "reflection")
"""In the order of torch's enumeration."""

ROWS_FROM = 40
"""Channels from which reading rows of channels beats GatherElements in onnxruntime (benchmarks/rewrites.py)."""

FAR_OUTSIDE = -9
"""A position none of whose taps lies in the image."""


# affine_grid


def affine_grid(theta: Tensor, size: Sequence[Any], align_corners: bool) -> Tensor:
    """Grid (N, H, W, 2) or (N, D, H, W, 3) of affine maps.

    Args:
        theta: The maps, (N, 2, 3) or (N, 3, 4).
        size: Of the image, (N, C, H, W) or (N, C, D, H, W).
        align_corners: Whether -1 and 1 are the centres of the outermost cells, rather than their outer edges.
    """
    axes = len(size) - 2
    columns = theta.reshape(-1, axes, axes + 1, *[1] * axes).movedim(1, -1)  # (N, column, 1, ..., 1, axes)
    grid = columns[:, axes]
    for axis in range(axes):
        shape = [-1 if other == axis else 1 for other in range(axes)] + [1]
        grid = grid + _coordinates(size[2 + axis], theta, align_corners).reshape(shape) * columns[:, axes - 1 - axis]
    return grid


def _coordinates(size: Any, theta: Tensor, align_corners: bool) -> Tensor:
    """Coordinates (size,) of the cells of an axis."""
    steps = torch.arange(size, device=theta.device, dtype=theta.dtype) * 2
    length = torch.full((), size, dtype=theta.dtype, device=theta.device)
    return (steps + (1 - length)) / ((length - 1).clamp(min=1) if align_corners else length)


@decomposition(nn.functional.affine_grid, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def affine_grid_of_any_size(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Tensor:
    """Grid (N, H, W, 2) or (N, D, H, W, 3) of affine maps; stock fixes such sizes, or errs where an axis has one cell.

    Sizes that both exporters write right are left alone. A traced size, a tensor, may come to be 1, which only
    align_corners makes a difference for.

    Math: the only cell of an axis lies at 0; onnxruntime's AffineGrid puts it at -1 with align_corners.
    """
    fails = any(isinstance(n, torch.SymInt) or (type(n) is int and n == 1) for n in size[2:])
    if not fails and not (align_corners and any(type(n) is not int for n in size[2:])):
        return NotImplemented
    return affine_grid(theta, size, bool(align_corners))


@decomposition(nn.functional.affine_grid, needed_on=("torchscript",), opset=(11, 19), exactness=Exactness.ROUNDING)
def affine_grid_to_sum(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Tensor:
    """Grid (N, H, W, 2) or (N, D, H, W, 3) of affine maps; stock TorchScript errs on a batch of one below opset 20."""
    return affine_grid(theta, size, bool(align_corners))


# grid_sample as GridSample


# Needed nowhere: both exporters of torch 2.15 write the same node. It is the form that include=["grid_sampler"] pins.
@symbolic("aten::grid_sampler", opset=(20, 99), exactness=Exactness.ROUNDING)
def grid_sampler(
    op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Samples an image (N, C, H, W) or volume (N, C, D, H, W) at coordinates in [-1, 1].

    Schema: grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) ->
            Tensor
    Source: https://onnx.ai/onnx/operators/onnx__GridSample.html (opset 20)
    """
    mode, padding = MODES_20[interpolation_mode], PADDINGS[padding_mode]
    return op.GridSample(input, grid, mode=mode, padding_mode=padding, align_corners=int(align_corners))


@symbolic("aten::grid_sampler", needed_on=("dynamo",), opset=(16, 19), exactness=Exactness.ROUNDING)
def grid_sampler_16(
    op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Samples an image (N, C, H, W) at coordinates in [-1, 1].

    Raises:
        UnsupportedError: The input is a volume. If the entry declined it, dynamo would write a node for it that the
            operator's specification does not cover.

    Schema: grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) ->
            Tensor
    Source: https://onnx.ai/onnx/operators/text_diff_GridSample_16_20.html
    """
    if op.rank(input) == 5:
        raise UnsupportedError(
            f"aten::grid_sampler of a volume needs opset 20 or later, got {op.opset}; raise opset_version, or do not "
            f"exclude 'grid_sample_3d_to_gather'."
        )
    mode, padding = MODES[interpolation_mode], PADDINGS[padding_mode]
    return op.GridSample(input, grid, mode=mode, padding_mode=padding, align_corners=int(align_corners))


# grid_sample by gathers, for opsets and engines without GridSample


Size: TypeAlias = "int | Tensor"
"""Of an axis, in cells: an int where it is fixed, else an int64 tensor of shape ()."""


class Tap(NamedTuple):
    """For each sample, one of the cells along an axis that it is made of."""

    cell: Tensor
    """Its number, int64."""
    weight: Tensor | None
    """None means 1."""


def grid_sample(image: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """Samples an image (N, C, H, W) or volume (N, C, D, H, W) at the coordinates of a grid.

    Args:
        image: What is sampled. Cells may be NaN or infinite; an infinite cell at the border may give NaN where eager
            torch gives infinity.
        grid: Coordinates in [-1, 1], x first: (N, P, Q, 2), for a volume (N, O, P, Q, 3).
        mode: One of MODES; "bilinear" means trilinear for a volume, "bicubic" is for images only.
        padding: What lies outside, one of PADDINGS.
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
    # The slowest axis' stride is written once for each channel, so that the product has indices for each channel.
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
    mode: str
    padding: str
    align_corners: bool
    volume: bool

    def taps(self, coordinate: Tensor) -> list[Tap]:
        # In torch's order of operations, so that halves round to the same cell.
        if self.align_corners:
            position = (coordinate + 1) * ((self.size - 1) / 2)
        else:
            position = (coordinate + 1) * (self.size / 2) - 0.5
        if self.padding != "zeros" and self.mode != "bicubic":
            position = self._fold(position)
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
            # A folded position has its taps inside. The exceptions are a cubic kernel's, and a linear one's second tap,
            # whose weight is 0 then.
            cell = self._fold(cell) if self.mode == "bicubic" else self._clamp(cell)
            return Tap(cell.to(torch.int64), weight)
        index = self._clamp(cell)
        inside = index == cell
        if weight is None:
            weight = inside.to(cell.dtype)
        elif self.volume:
            weight = torch.where(inside, weight, constant(0, weight))
        else:
            weight = weight * inside.to(weight.dtype)  # in an image, torch too gives NaN for NaN
        return Tap(index.to(torch.int64), weight)

    def _number(self, cell: Tensor) -> Tensor:
        """The cell's number without NaN, which must not become an index."""
        return _at_least(cell, FAR_OUTSIDE) if self.padding == "zeros" else cell

    def _fold(self, position: Tensor) -> Tensor:
        """Brings positions into the image as border and reflection padding do."""
        if self.padding == "reflection":
            position = self._reflect(position)
        if not self.volume:
            return self._clamp(_at_least(position, 0))
        last = _tensor(self.size - 1, position)
        return torch.where(position < last, position, last).clamp(min=0)  # NaN becomes the last cell

    def _reflect(self, position: Tensor) -> Tensor:
        edge = 0.0 if self.align_corners else 0.5
        period = 2 * (self.size - 1 if self.align_corners else self.size)
        if isinstance(period, int) and period == 0:
            return torch.zeros_like(position)
        distance = (position + edge).abs() if edge else position.abs()
        distance = distance - torch.floor(distance / period) * period
        folded = torch.minimum(distance, period - distance)
        return folded - edge if edge else folded

    def _clamp(self, position: Tensor) -> Tensor:
        if isinstance(self.size, int):
            return position.clamp(0, self.size - 1)
        return torch.minimum(position.clamp(min=0), _tensor(self.size - 1, position))


def _cubic_weight(fraction: Tensor, k: int) -> Any:
    """Weight of the cell k to the right of the one that holds the position."""
    distance = fraction - k if k <= 0 else k - fraction
    weight = cubic.inner if k in (0, 1) else cubic.outer
    return weight(distance, cubic.PLAIN)


def _at_least(position: Tensor, least: int) -> Tensor:
    """The position, but at least so much; where it is NaN, `least`, since a comparison with NaN is false."""
    return torch.where(position > least, position, constant(least, position))


def _size(image: Tensor, axis: int) -> Size:
    known = static_size(image, axis)
    return size_tensor(image, axis) if known is None else known


def _tensor(size: Size, like: Tensor) -> Tensor:
    return constant(size, like) if isinstance(size, int) else size.to(like.dtype)


# F.grid_sample calls torch.grid_sampler; torch.grid_sampler_2d and _3d have its signature.
@decomposition(
    (torch.grid_sampler, torch.grid_sampler_3d),
    needed_on=("torchscript", "dynamo"),
    opset=(16, 19),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/100790",
)
def grid_sample_3d_to_gather(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Samples a volume by reading cells and weighting them.

    Stock TorchScript refuses volumes at these opsets, stock dynamo writes a GridSample that no specification covers.

    Declines: images (N, C, H, W), for which there is GridSample.

    Source: https://onnx.ai/onnx/operators/onnx__GridSample.html: volumes are new in opset 20
    """
    if input.dim() != 5:
        decline(f"wanted a volume (N, C, D, H, W), got {input.dim()} axes")
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


@decomposition(
    (torch.grid_sampler, torch.grid_sampler_2d, torch.grid_sampler_3d),
    avoids=("GridSample",),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/NVIDIA/TensorRT/issues/4646",
)
def grid_sample_to_gather(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Samples an image or volume by reading cells and weighting them.

    Coordinates that are NaN or infinite give what eager torch gives on a CPU.
    """
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


@decomposition(
    (torch.grid_sampler_2d, torch.grid_sampler_3d), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE
)
def grid_sampler_nd_to_grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Calls the operator that the exporters know; TorchScript refuses both of these, dynamo the second.

    Math: torch.grid_sampler calls one of the two, by the number of axes.
    Source: ATen/native/GridSampler.cpp
    """
    return torch.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)
