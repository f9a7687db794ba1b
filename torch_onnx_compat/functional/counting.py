"""Histograms and counts by comparing every value with every bin.

Math:   what equals a number is counted, or weighed, in one sum.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant


def bincount(x: Tensor, weights: Tensor | None, least: int) -> Tensor:
    """Number of times, or weight, of 0, 1, ... up to the greatest value, and of `least` numbers at least."""
    length = torch.cat((x, torch.full_like(x[:1], least - 1), x.new_full((1,), least - 1))).max() + 1
    same: Tensor = torch.arange(length, dtype=x.dtype).unsqueeze(1) == x  # type: ignore[call-overload]
    if weights is None:
        return same.to(torch.int64).sum(1)
    weighed = weights if weights.is_floating_point() else weights.to(torch.float64)
    return (same.to(weighed.dtype) * weighed).sum(1)


def histogram(x: Tensor, bins: int, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Number of values in each of `bins` cells between two bounds, the upper one included."""
    flat = x.reshape(-1)
    cell = torch.floor((flat - low) * bins / (high - low)).clamp(max=bins - 1)
    cell = torch.where((flat >= low) & (flat <= high), cell, torch.full_like(cell, -1))
    return (cell.unsqueeze(-1) == constant(range(bins), x)).to(x.dtype).sum(0)
