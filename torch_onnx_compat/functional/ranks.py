"""Order statistics: medians and quantiles from the ascending values of an axis.

Math:   of n values the median is number (n - 1) // 2 in ascending order, counted from 0, and the q-quantile lies at the
        rank q * (n - 1), which torch computes in float64, between two of them if that is no integer. NaN, if it is not
        left out, is the result for every axis that holds one; if it is, infinity stands for it behind the others, and
        n counts only those.
Source: https://docs.pytorch.org/docs/stable/generated/torch.quantile.html; ATen/native/Sorting.cpp
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant, size_tensor


def ascending(x: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """The `count` least values of the last axis in ascending order, and their indices."""
    values, indices = torch.topk(x, count, -1, largest=False)
    return values, indices


def median(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Lower median of the last axis, which is kept, and its index.

    Args:
        x: At least one axis.
        size: Of the last axis, None if it varies.
    """
    rank = ((x.shape[-1] if size is None else size) - 1) // 2
    values, indices = (found.narrow(-1, rank, 1) for found in ascending(x, rank + 1))
    if x.is_floating_point():
        is_nan = torch.isnan(x)
        spoiled = is_nan.any(-1, keepdim=True)
        values = torch.where(spoiled, constant(float("nan"), x), values)
        indices = torch.where(spoiled, is_nan.to(torch.int32).argmax(-1, keepdim=True), indices)
    return values, indices


def nanmedian(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Lower median of what is not NaN along the last axis, which is kept, and its index."""
    if not x.is_floating_point():
        return median(x, size)
    filled, count = _without_nan(x)
    rank = torch.div((count - 1).clamp(min=0), 2, rounding_mode="floor")
    values, indices = (f.gather(-1, rank) for f in ascending(filled, x.shape[-1] if size is None else size))
    return torch.where(count == 0, constant(float("nan"), x), values), indices


def quantiles(x: Tensor, q: Tensor | float, size: int | None, interpolation: str, *, ignore_nan: bool) -> Tensor:
    """Quantiles of the last axis, in whose place those of the several q come.

    Args:
        x: Floating-point numbers (..., n).
        q: One probability or several, (m,); in 0..1.
        size: n, None if it varies.
        interpolation: As torch names them.
        ignore_nan: Whether NaN is left out.
    """
    count = None
    if ignore_nan:
        x, count = _without_nan(x)
    ordered, _ = ascending(x, x.shape[-1] if size is None else size)
    if isinstance(q, Tensor):
        probabilities = q.reshape(-1).double()
    else:
        exact = q if x.dtype == torch.float64 else float(np.float32(q))  # torch makes it a tensor like the input
        probabilities = constant([exact], x, torch.float64)
    if count is not None:
        last = (count - 1).clamp(min=0)
    else:
        last = size_tensor(x, -1) - 1 if size is None else constant(size - 1, x, torch.int64)
    result = _between(ordered, probabilities * last.double(), interpolation)
    spoiled = torch.isnan(x).any(-1, keepdim=True) if count is None else count == 0
    return torch.where(spoiled, constant(float("nan"), x), result)


def _between(ordered: Tensor, rank: Tensor, interpolation: str) -> Tensor:
    if interpolation == "nearest":
        return _pick(ordered, rank.round())
    if interpolation == "lower":
        return _pick(ordered, rank.floor())
    if interpolation == "higher":
        return _pick(ordered, rank.ceil())
    below = rank.floor()
    low, high = _pick(ordered, below), _pick(ordered, rank.ceil())
    weight = constant(0.5, ordered) if interpolation == "midpoint" else (rank - below).to(ordered.dtype)
    return torch.lerp(low, high, weight.expand_as(low))


def _pick(ordered: Tensor, rank: Tensor) -> Tensor:
    index = rank.to(torch.int64)
    return ordered.index_select(-1, index) if index.dim() == 1 else ordered.gather(-1, index)


def _without_nan(x: Tensor) -> tuple[Tensor, Tensor]:
    is_nan = torch.isnan(x)
    filled = torch.where(is_nan, constant(float("inf"), x), x)
    return filled, torch.logical_not(is_nan).sum(-1, keepdim=True)
