"""affine_grid as sums of products with the coordinates of each axis.

Math:   of an axis of n cells, cell i has the coordinate (2 i + 1 - n) / d, with d = n or, where the outermost cells'
        centres are -1 and 1, d = max(n - 1, 1). A grid point is theta[:, -1] + sum over axes of coordinate * column.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


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
    """Of the cells of an axis, (size,)."""
    steps = torch.arange(size, device=theta.device, dtype=theta.dtype) * 2
    length = torch.full((), size, dtype=theta.dtype, device=theta.device)
    return (steps + (1 - length)) / ((length - 1).clamp(min=1) if align_corners else length)
