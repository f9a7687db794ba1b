"""embedding_bag without a loop over the bags.

Math:   rows of a table are reduced over bags: the second axis of 2-D indices, or the runs of 1-D indices that start at
        offsets. There, index i is in the bag numbered by how many offsets are at most i, less 1: a running sum of the
        ones that the offsets scatter.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html
"""

from __future__ import annotations

import torch
from torch import Tensor


def reduce_rows(rows: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """Bags of equal length, (B, L, D), reduced to (B, D).

    Args:
        rows: Of the table.
        counted: False where a row is padding, (B, L); None where none is.
        mode: "sum", "mean" or "max".
    """
    if counted is None:
        if mode == "max":
            return rows.amax(1)
        return rows.mean(1) if mode == "mean" else rows.sum(1)
    mask = counted.unsqueeze(-1)
    if mode == "max":
        return _finite(torch.where(mask, rows, _number(float("-inf"), rows)).amax(1), mask.to(torch.int32).sum(1))
    total = torch.where(mask, rows, _number(0.0, rows)).sum(1)
    return total / counted.to(rows.dtype).sum(1, keepdim=True).clamp(min=1) if mode == "mean" else total


def reduce_runs(rows: Tensor, starts: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """Bags that are runs of rows (I, D), reduced to (B, D); an empty bag gives zeros.

    Args:
        rows: Of the table.
        starts: Of the runs, (B,), the first one 0.
        counted: False where a row is padding, (I,); None where none is.
        mode: "sum", "mean" or "max".
    """
    ones = torch.ones_like(starts)
    marks = torch.cat((torch.zeros_like(rows[:, 0], dtype=torch.int64), ones[:1] * 0)).scatter_add(0, starts, ones)
    bag = marks.cumsum(0)[:-1] - 1
    if mode == "max":
        member = bag == torch.arange(starts.shape[0], device=rows.device).unsqueeze(-1)
        if counted is not None:
            member = member & counted
        count = member.to(torch.int32).sum(1).unsqueeze(-1)
        lowest = rows.new_full((starts.shape[0], 1, rows.shape[1]), float("-inf"))
        candidates = torch.where(member.unsqueeze(-1), rows, _number(float("-inf"), rows))
        # One more candidate, for there is no largest of none at all.
        padded = torch.cat((candidates, lowest), 1)
        return _finite(padded.amax(1), count)
    if counted is not None:
        rows = torch.where(counted.unsqueeze(-1), rows, _number(0.0, rows))
    empty = rows.new_zeros(starts.shape[0], rows.shape[1])
    total = empty.scatter_add(0, bag.unsqueeze(-1).expand_as(rows), rows)
    if mode == "sum":
        return total
    each = torch.ones_like(rows[:, 0]) if counted is None else counted.to(rows.dtype)
    return total / empty[:, 0].scatter_add(0, bag, each).clamp(min=1).unsqueeze(-1)


def _finite(largest: Tensor, count: Tensor) -> Tensor:
    """Zeros where there was nothing to take the largest of."""
    return torch.where(count > 0, largest, _number(0.0, largest))


def _number(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)
