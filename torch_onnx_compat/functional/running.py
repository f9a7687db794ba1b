"""Running products, maxima and the like: what the cells of an axis up to and including each one reduce to.

Math:   of a short axis, or one of unknown size, each cell sees a copy of the axis in which the cells behind it hold
        the neutral element: one reduction over n * n cells. A long one is combined with itself shifted by 1, 2, 4, ...
        cells, after which every cell has seen 1, 3, 7, ... of those before it (Hillis and Steele).
Source: Hillis and Steele, Data parallel algorithms, 1986, https://doi.org/10.1145/7902.7903
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant

TRIANGLE_LIMIT = 64
"""Length up to which onnxruntime computes the n * n cells no slower than the shifted copies."""


def running(
    x: Tensor,
    dim: int,
    size: int | None,
    *,
    neutral: float,
    reduce: Callable[[Tensor], Tensor],
    combine: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Reduces the beginnings of an axis.

    Args:
        x: Any tensor with axes.
        dim: The axis.
        size: Its size, None if it varies.
        neutral: Element that leaves the reduction unchanged.
        reduce: Reduces the last axis.
        combine: Reduces two tensors, cell by cell; None where only `reduce` will do.
    """
    if combine is not None and size is not None and size > TRIANGLE_LIMIT:
        return _by_shifts(x, dim, size, combine)
    last = x.transpose(dim, -1)
    if size is None:
        cell = torch.arange(x.shape[dim], device=x.device)
        seen = cell <= cell.unsqueeze(1)
    else:
        seen = constant(np.tril(np.ones((size, size), dtype=bool)), like=x, dtype=torch.bool)
    copies = torch.where(seen, last.unsqueeze(-2), constant(neutral, like=x))
    return reduce(copies).transpose(dim, -1)


def _by_shifts(x: Tensor, dim: int, size: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    shift = 1
    while shift < size:
        ahead, behind = x.narrow(dim, shift, size - shift), x.narrow(dim, 0, size - shift)
        x = torch.cat((x.narrow(dim, 0, shift), combine(behind, ahead)), dim)
        shift *= 2
    return x


def running_extreme(x: Tensor, dim: int, size: int | None, *, largest: bool) -> tuple[Tensor, Tensor]:
    """Running maximum or minimum, and the index of the cell that set it, the last one of several.

    Args:
        x: Any tensor with axes.
        dim: The axis.
        size: Its size, None if it varies.
        largest: Whether the maximum is wanted.
    """
    values = _extreme(x, dim, size, largest)
    if x.is_floating_point():
        # Engines' reductions take a NaN or leave it, by its place. Only what comes after one is set here.
        nan_before = torch.isnan(x).to(torch.float32).cumsum(dim) > 0
        values = torch.where(nan_before, constant(float("nan"), like=x), values)
    cell = torch.arange(x.shape[dim], device=x.device) if size is None else constant(range(size), x, torch.int64)
    cell = cell.reshape([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
    is_record = x == values
    if x.is_floating_point():
        is_record = is_record | torch.isnan(x)
    records = torch.where(is_record, cell, constant(0, x, torch.int64))
    return values, _extreme(records, dim, size, largest=True)


def _extreme(x: Tensor, dim: int, size: int | None, largest: bool) -> Tensor:
    limits = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    neutral = limits.min if largest else limits.max
    if x.is_floating_point():
        neutral = -float("inf") if largest else float("inf")
    return running(
        x,
        dim,
        size,
        neutral=neutral,
        reduce=(lambda y: y.amax(-1)) if largest else (lambda y: y.amin(-1)),
        combine=torch.maximum if largest else torch.minimum,
    )
