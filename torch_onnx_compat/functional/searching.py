"""Positions in sorted tables.

Math:   the cells that are not at or beyond a value stand at the front of a sorted table, so their number is the value's
        position. Long tables are searched in steps of 2^k cells, ..., 2, 1 instead, each taken unless it leads beyond
        the value. NaN compares false with every cell and so belongs after the last one, where torch puts it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.searchsorted.html; ATen/native/Bucketization.cpp
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant

COUNT_LIMIT = 64
"""Cells up to which onnxruntime compares a few values with each of them no slower than it searches step by step."""


def positions(table: Tensor, values: Tensor, size: int | None, *, right: bool) -> Tensor:
    """How many cells of the last axis of a table are less than (right: at most) each value.

    Args:
        table: Sorted, (size,) or (..., size).
        values: Any shape for a one-dimensional table, else (..., m).
        size: Cells of the table, None if their number varies.
        right: Whether equal cells are counted.
    """
    if size is not None and size > COUNT_LIMIT:
        return _by_steps(table, values, size, right)
    cells = table if table.dim() == 1 else table.unsqueeze(-2)
    counted: Tensor = torch.logical_not(_is_beyond(cells, values.unsqueeze(-1), right)).sum(-1)
    return counted


def _is_beyond(cells: Tensor, values: Tensor, right: bool) -> Tensor:
    return cells > values if right else cells >= values


def _by_steps(table: Tensor, values: Tensor, size: int, right: bool) -> Tensor:
    position = constant(0, table, torch.int64).expand(values.shape)
    step = 1 << (size.bit_length() - 1)
    while step:
        further = position + step
        last = (further - 1).clamp(max=size - 1)
        cells = table[last] if table.dim() == 1 else table.gather(-1, last)
        stop = _is_beyond(cells, values, right)
        if size & (size + 1):  # steps may lead past the end unless they add up to the size
            stop = stop | (further > size)
        position = torch.where(stop, position, further)
        step //= 2
    return position
