"""Diagonals as masks.

Math:   cell (r, c) of a matrix lies on diagonal k if and only if c - r == k.
Source: https://docs.pytorch.org/docs/stable/generated/torch.diag_embed.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat.tracing import constant


def diagonal_mask(rows: Any, columns: Any, offset: int, like: Tensor) -> Tensor:
    """True on one diagonal of a (rows, columns) matrix; a constant where both sizes are plain numbers."""
    if type(rows) is int and type(columns) is int:
        return constant(np.eye(rows, columns, offset, dtype=bool), like, torch.bool)
    below = torch.arange(rows, device=like.device).unsqueeze(1) + offset
    return below == torch.arange(columns, device=like.device)


def diag_embed(x: Tensor, offset: int, dim1: int, dim2: int, size: int | None) -> Tensor:
    """Square matrices with the last axis on a diagonal.

    Args:
        x: (..., n)
        offset: Which diagonal.
        dim1: Where the rows go, an axis of the result.
        dim2: Where the columns go.
        size: n if it is fixed.
    """
    rank, width = x.dim() + 1, abs(offset)
    first, second = dim1 % rank, dim2 % rank
    if first > second:
        first, second, offset = second, first, -offset
    side = x.shape[-1] + width if size is None else size + width
    padded = x
    if width:
        padded = nn.functional.pad(x, (0, width))
    spread = padded.unsqueeze(-1) if offset >= 0 else padded.unsqueeze(-2)
    mask = diagonal_mask(side, side, offset, x)
    result = mask & spread if x.dtype == torch.bool else torch.where(mask, spread, x.new_zeros(()))
    return result if (first, second) == (rank - 2, rank - 1) else result.movedim((rank - 2, rank - 1), (first, second))


def diagonal_scatter(x: Tensor, src: Tensor, offset: int, dim1: int, dim2: int, sizes: list[int | None]) -> Tensor:
    """The tensor with a diagonal exchanged.

    Args:
        x: Any tensor of two or more axes.
        src: The diagonal, (..., n).
        offset: Which diagonal.
        dim1: Axis of the rows.
        dim2: Axis of the columns.
        sizes: Sizes of x, None where they vary.
    """
    first, second = dim1 % x.dim(), dim2 % x.dim()
    axes = [axis for axis in range(x.dim()) if axis not in (first, second)] + [first, second]
    rows: Any
    columns: Any
    rows, columns = (x.shape[axis] if sizes[axis] is None else sizes[axis] for axis in (first, second))
    # Each row with a cell on the diagonal takes the src of that cell; what the others take is masked out.
    length = src.shape[-1] - 1
    if type(rows) is int:
        table = np.arange(rows) + min(offset, 0)
        place = constant(table, src, torch.int64)
    else:
        place = torch.arange(rows, device=x.device) + min(offset, 0)
    spread = src.index_select(src.dim() - 1, place.clamp(min=0).minimum(torch.full_like(place, length))).unsqueeze(-1)
    written = torch.where(diagonal_mask(rows, columns, offset, x), spread, x.permute(axes))
    return written.permute([axes.index(axis) for axis in range(x.dim())])
