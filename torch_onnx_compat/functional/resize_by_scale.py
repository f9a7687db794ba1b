"""interpolate by a scale that is kept, nearest, linear and bicubic, by tables of cells and weights.

Math:   with scale s, output i stands at c = (i + 1/2) / s - 1/2, or at i (n - 1) / (o - 1) with align_corners;
        nearest reads cell floor(i / s); linear weighs the cells around max(c, 0), cubic the four around c. Where o = n,
        or o = 2 n for nearest, nearest and linear take o / n for the scale.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html; ATen/native/UpSample.h
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.arithmetic import exact
from torch_onnx_compat.functional.resize import Axis
from torch_onnx_compat.functional.take import take

CUBIC = -0.75
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
            input = take(input, _nearest(axis, input), axis.number)
        else:
            weigh = _cubic if mode == "bicubic" else _linear
            input = _weighed(input, axis, *weigh(_place(axis, align_corners, input), axis, input))
    return input


def _numbers(axis: Axis, like: Tensor) -> Tensor:
    return torch.arange(axis.output, device=like.device).to(_dtype(like))


def _dtype(like: Tensor) -> torch.dtype:
    """What torch computes places in."""
    return torch.float64 if like.dtype == torch.float64 else torch.float32


def _last(axis: Axis, like: Tensor) -> Tensor:
    return _whole(axis.size, like) - 1


def _whole(size: Any, like: Tensor) -> Tensor:
    return torch.full((1,), size, dtype=torch.int64, device=like.device)


def _at_least(numbers: Tensor, least: int) -> Tensor:
    # Before opset 12, Clip takes float32 only, and Max no integers.
    return torch.maximum(numbers, torch.full_like(numbers, least))


def _nearest(axis: Axis, like: Tensor) -> Tensor:
    numbers, last, output = _numbers(axis, like), _last(axis, like), _whole(axis.output, like)
    cells = torch.minimum((numbers * _step(axis, like)).floor().long(), last)
    cells = torch.where(output == 2 * (last + 1), (numbers / 2).floor().long(), cells)
    return torch.where(output == last + 1, numbers.long(), cells)


def _place(axis: Axis, align_corners: bool, like: Tensor) -> Tensor:
    """Where each output stands, in cells (o,)."""
    numbers = _numbers(axis, like)
    if align_corners:
        # A single output has place 0 whatever the step.
        last, apart = (size.to(numbers.dtype) for size in (_last(axis, like), _whole(axis.output, like) - 1))
        return numbers * (last / _at_least(apart, 1))
    return (numbers + 0.5) * _step(axis, like) - 0.5


def _step(axis: Axis, like: Tensor) -> Tensor:
    """How many cells one output is from the next."""
    if axis.scale is None:
        return _whole(axis.size, like).to(_dtype(like)) / _whole(axis.output, like).to(_dtype(like))
    return (1 / exact(axis.scale, like)).to(_dtype(like))


def _linear(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last = _last(axis, like)
    place = torch.where(_whole(axis.output, like) == last + 1, _numbers(axis, like), _at_least(place, 0))
    cell = torch.minimum(place.floor().long(), last)
    rest = place - cell
    return torch.minimum(torch.stack((cell, cell + 1), 1), last), torch.stack((1 - rest, rest), 1)


def _cubic(place: Tensor, axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    last, cell = _last(axis, like).to(place.dtype), place.floor()
    rest = place - cell
    cells = torch.stack((cell - 1, cell, cell + 1, cell + 2), 1)
    far, near = (_outer(distance) for distance in (rest + 1, 2 - rest))
    weights = torch.stack((far, _inner(rest), _inner(1 - rest), near), 1)
    return torch.minimum(_at_least(cells, 0), last).long(), weights


def _inner(distance: Tensor) -> Tensor:
    return ((CUBIC + 2) * distance - (CUBIC + 3)) * distance * distance + 1


def _outer(distance: Tensor) -> Tensor:
    return ((distance - 5) * distance + 8) * distance * CUBIC - 4 * CUBIC


def _weighed(x: Tensor, axis: Axis, cells: Tensor, weights: Tensor) -> Tensor:
    """Sums of cells (o, k) of an axis with weights (o, k)."""
    after = x.dim() - axis.number - 1
    found = take(x, cells, axis.number) * weights.to(x.dtype).reshape(*weights.shape, *[1] * after)
    return found.sum(axis.number + 1)
