"""Sorting, order statistics, distinct values and positions in sorted tables."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, size_tensor, static_size

BITWISE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
ROUNDED = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
BITWISE_IN_TORCHSCRIPT = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)


# Sorting. Among equal values ONNX's TopK takes the one with the lower index first, in either direction.


@decomposition(torch.sort, **BITWISE)
def sort_of_bool(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Sorts booleans, which ONNX's TopK does not take; among equal values it keeps their order."""
    if input.dtype != torch.bool:
        return NotImplemented
    values, indices = torch.sort(input.to(torch.int32), dim=dim, descending=descending)
    return torch.return_types.sort((values.to(torch.bool), indices))


@decomposition(torch.sort, **BITWISE)
def sort_stable(
    input: Tensor, *plain: Any, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """Sorts and keeps the order of equal values; neither exporter knows the overload that has `stable`.

    Source: https://onnx.ai/onnx/operators/onnx__TopK.html
    """
    return NotImplemented if stable is None else torch.sort(input, dim=dim, descending=descending)


@decomposition(torch.argsort, **BITWISE)
def argsort_stable(
    input: Tensor, *plain: Any, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Tensor:
    """Indices that sort and keep the order of equal values; neither exporter knows the overload that has `stable`.

    Source: https://onnx.ai/onnx/operators/onnx__TopK.html
    """
    return NotImplemented if stable is None else torch.argsort(input, dim=dim, descending=descending)


@decomposition(torch.msort, **BITWISE_IN_TORCHSCRIPT)
def msort_to_sort(input: Tensor) -> Tensor:
    """Sorts along the first axis; stock TorchScript has no symbolic for it."""
    return torch.sort(input, 0).values


# Order statistics. Of n values the median is number (n - 1) // 2 in ascending order, counted from 0, and the q-quantile
# lies at the rank q * (n - 1), which torch computes in float64, between two of them if that is no integer. NaN, if it
# is not left out, is the result for every axis that holds one; if it is, infinity stands for it behind the others, and
# n counts only those (ATen/native/Sorting.cpp).


@decomposition(torch.kthvalue, **BITWISE)
def kthvalue_to_topk(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Value of rank k with its index, the last of the k smallest; neither exporter has an operator for it.

    Of equal cells torch names any.
    """
    if input.dim() == 0:
        return torch.return_types.kthvalue((input.clone(), torch.zeros_like(input, dtype=torch.int64)))
    values, indices = (found.narrow(dim, k - 1, 1) for found in torch.topk(input, k, dim, largest=False))
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return torch.return_types.kthvalue((values, indices))


def lowest(x: Tensor, count: Any) -> tuple[Tensor, Tensor]:
    """The `count` least values of the last axis in ascending order, and their indices."""
    return torch.topk(x, count, -1, largest=False)


def with_infinity_for_nan(x: Tensor) -> tuple[Tensor, Tensor]:
    """The values with infinity in the place of NaN, and how many of the last axis, which is kept, are none."""
    is_nan = torch.isnan(x)
    filled = torch.where(is_nan, constant(float("inf"), x), x)
    return filled, torch.logical_not(is_nan).sum(-1, keepdim=True)


def count_values(x: Tensor) -> int | None:
    """Number of an argument's cells, None where it varies."""
    sizes = [static_size(x, axis) for axis in range(x.dim())]
    fixed = [size for size in sizes if size is not None]
    return math.prod(fixed) if len(fixed) == len(sizes) else None


def median(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Lower median of the last axis, which is kept, and its index.

    Args:
        x: At least one axis.
        size: Of the last axis, None if it varies.
    """
    rank = ((x.shape[-1] if size is None else size) - 1) // 2
    values, indices = (found.narrow(-1, rank, 1) for found in lowest(x, rank + 1))
    if x.is_floating_point():
        is_nan = torch.isnan(x)
        has_nan = is_nan.any(-1, keepdim=True)
        values = torch.where(has_nan, constant(float("nan"), x), values)
        indices = torch.where(has_nan, is_nan.to(torch.int32).argmax(-1, keepdim=True), indices)
    return values, indices


def nanmedian(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Lower median of what is not NaN along the last axis, which is kept, and its index."""
    if not x.is_floating_point():
        return median(x, size)
    filled, count = with_infinity_for_nan(x)
    rank = torch.div((count - 1).clamp(min=0), 2, rounding_mode="floor")
    values, indices = (f.gather(-1, rank) for f in lowest(filled, x.shape[-1] if size is None else size))
    return torch.where(count == 0, constant(float("nan"), x), values), indices


Median = Callable[[Tensor, "int | None"], tuple[Tensor, Tensor]]


def _median(input: Tensor, dim: int | None, keepdim: bool, of_last_axis: Median) -> Any:
    """The arguments of a body: the median of all values, or that of an axis and its index."""
    if dim is None:
        flat, size = input.reshape(-1), count_values(input)
        may_be_empty = size is None and input.is_floating_point()
        return (_of_any_number(flat, of_last_axis) if may_be_empty else of_last_axis(flat, size)[0]).reshape(())
    if input.dim() == 0:
        decline("the input must have an axis, got a single number")
    found = of_last_axis(input.transpose(dim, -1), static_size(input, dim))
    return tuple(f.transpose(dim, -1) if keepdim else f.transpose(dim, -1).squeeze(dim) for f in found)


def _of_any_number(flat: Tensor, of_last_axis: Median) -> Tensor:
    """The median of all values, of which there may be none: one more that is NaN is left out, but where it is alone."""
    found, _ = nanmedian(torch.nn.functional.pad(flat, (0, 1), value=float("nan")), None)
    if of_last_axis is nanmedian:
        return found
    return torch.where(torch.isnan(flat).any(), constant(float("nan"), flat), found)


@decomposition(torch.median, **BITWISE)
def median_to_topk(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Lower median of an axis with its index, or of all values. Of equal cells torch names any.

    Declines: an axis of a single number.
    """
    found = _median(input, dim, keepdim, median)
    return found if dim is None else torch.return_types.median(found)


@decomposition(torch.nanmedian, **BITWISE)
def nanmedian_to_topk(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Lower median of an axis with its index, or of all values, without NaN. Of equal cells torch names any.

    Declines: an axis of a single number.
    """
    found = _median(input, dim, keepdim, nanmedian)
    return found if dim is None else torch.return_types.nanmedian(found)


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
        x, count = with_infinity_for_nan(x)
    ordered, _ = lowest(x, x.shape[-1] if size is None else size)
    if isinstance(q, Tensor):
        probabilities = q.reshape(-1).double()
    else:
        exact = q if x.dtype == torch.float64 else float(np.float32(q))  # torch makes it a tensor like the input
        probabilities = constant([exact], x, torch.float64)
    if count is not None:
        last = (count - 1).clamp(min=0)
    else:
        last = size_tensor(x, -1) - 1 if size is None else constant(size - 1, x, torch.int64)
    result = _interpolate(ordered, probabilities * last.double(), interpolation)
    is_undefined = torch.isnan(x).any(-1, keepdim=True) if count is None else count == 0
    return torch.where(is_undefined, constant(float("nan"), x), result)


def _interpolate(ordered: Tensor, rank: Tensor, interpolation: str) -> Tensor:
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


def _quantile(
    input: Tensor, q: Tensor | float, dim: int | None, keepdim: bool, interpolation: str, *, ignore_nan: bool
) -> Tensor:
    """The arguments of a body: the quantiles of an axis or of all values; those of several q along a new first axis."""
    several = isinstance(q, Tensor) and q.dim() > 0
    if dim is None:
        found = quantiles(input.reshape(-1), q, count_values(input), interpolation, ignore_nan=ignore_nan)
        return found.reshape([-1] * several + [1] * keepdim * input.dim())
    dim %= input.dim()
    found = quantiles(input.transpose(dim, -1), q, static_size(input, dim), interpolation, ignore_nan=ignore_nan)
    found = found.transpose(dim, -1)
    if several:
        found, dim = found.unsqueeze(0).transpose(0, dim + 1), dim + 1
    return found if keepdim else found.squeeze(dim)


@decomposition(torch.quantile, **ROUNDED)
def quantile_to_topk(
    input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Quantiles of an axis, or of all values; stock TorchScript has no symbolic, stock dynamo errs on NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, ignore_nan=False)


@decomposition(torch.nanquantile, **ROUNDED)
def nanquantile_to_topk(
    input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Quantiles of what is not NaN; stock TorchScript has no symbolic, stock dynamo sorts NaN anywhere."""
    return _quantile(input, q, dim, keepdim, interpolation, ignore_nan=True)


@decomposition(torch.mode, **BITWISE)
def mode_to_counts(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Most frequent value of an axis with its index; takes n * n comparisons.

    Declines: bool, and a single number.

    Math:   comparing an axis with itself counts how often each cell's value occurs; of the cells with the highest count
            the least value is the mode, and the last cell that holds it the index, as torch has it for short axes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.mode.html; ATen/native/cpu/SortingKernel.cpp
    """
    if input.dim() == 0 or input.dtype == torch.bool:
        decline("the input must be numbers along an axis")
    x = input.transpose(dim, -1)
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    limit = float("inf") if x.is_floating_point() else torch.iinfo(x.dtype).max
    is_frequent = counts == counts.amax(-1, keepdim=True)
    values = torch.where(is_frequent, x, constant(limit, x)).amin(-1, keepdim=True)
    cell = torch.arange(x.shape[-1], device=x.device)
    indices = torch.where(x == values, cell, constant(0, x, torch.int64)).amax(-1, keepdim=True)
    values, indices = values.transpose(dim, -1), indices.transpose(dim, -1)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return torch.return_types.mode((values, indices))


# Distinct values


@decomposition(torch.unique_consecutive, **BITWISE)
def unique_consecutive_to_mask(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Drops repeated neighbours; neither exporter takes it.

    Math: a run begins where a cell differs from the one before; the number of beginnings so far is the run's number,
          the distance to the next one its length.
    """
    x = input.reshape(-1) if dim is None else input.transpose(dim, 0)
    rows = x.reshape(x.shape[0], -1)
    differs = (rows[1:] != rows[:-1]).any(1)
    begins = torch.cat((torch.ones_like(rows[:1, 0], dtype=torch.bool), differs))
    found = x[begins]
    results = [found if dim is None else found.transpose(dim, 0)]
    if return_inverse:
        number = begins.to(torch.int64).cumsum(0) - 1
        results.append(number.reshape(input.shape) if dim is None else number)
    if return_counts:
        first = begins.nonzero().squeeze(1)
        results.append(torch.cat((first[1:], size_tensor(x, 0).reshape(1))) - first)
    return tuple(results) if len(results) > 1 else results[0]


@decomposition(torch.unique, **BITWISE_IN_TORCHSCRIPT)
def unique_inverse(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> tuple[Tensor, ...]:
    """Distinct values and where each one went; stock TorchScript returns that flat."""
    if not return_inverse or dim is not None:
        return NotImplemented
    values, inverse, *counts = torch.unique(input.reshape(-1), sorted, True, return_counts)
    return values, inverse.reshape(input.shape), *counts


# Positions in sorted tables. The cells that are not at or beyond a value stand at the front of the table, so their
# number is the value's position. NaN compares false with every cell and so belongs after the last one, where torch puts
# it (ATen/native/Bucketization.cpp).


COUNT_LIMIT = 64
"""Cells up to which onnxruntime compares a few values with each of them no slower than it searches step by step."""


def find_positions(table: Tensor, input: Tensor | float, size: int | None, *, right: bool, out_int32: bool) -> Tensor:
    """How many cells of the last axis of a table are less than (right: at most) each value.

    Args:
        table: Sorted, (size,) or (..., size).
        input: Values, of any shape for a one-dimensional table, else (..., m).
        size: Cells of the table, None if their number varies.
        right: Whether equal cells are counted.
        out_int32: Whether the result is int32.
    """
    values = input if isinstance(input, Tensor) else torch.full((), input, dtype=table.dtype, device=table.device)
    if size is not None and size > COUNT_LIMIT:
        found = _search_by_steps(table, values, size, right)
    else:
        cells = table if table.dim() == 1 else table.unsqueeze(-2)
        found = torch.logical_not(_is_beyond(cells, values.unsqueeze(-1), right)).sum(-1)
    return found.to(torch.int32) if out_int32 else found


def _is_beyond(cells: Tensor, values: Tensor, right: bool) -> Tensor:
    return cells > values if right else cells >= values


def _search_by_steps(table: Tensor, values: Tensor, size: int, right: bool) -> Tensor:
    """Goes on by 2^k cells, ..., 2, 1, each time unless that leads beyond the value."""
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


@decomposition(torch.searchsorted, **BITWISE)
def searchsorted_to_sum(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Position that each value has in a sorted table; neither exporter has an operator for it."""
    size = static_size(sorted_sequence, -1)
    table = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    return find_positions(table, input, size, right=right or side == "right", out_int32=out_int32)


@decomposition(torch.bucketize, always=True, exactness=Exactness.BITWISE)
def bucketize_to_sum(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Number of the bucket of each value; stock takes twice to fourteen times the nodes.

    Declines: many boundaries, for which stock dynamo's binary search is the faster.
    """
    size = static_size(boundaries, 0)
    if size is not None and size > COUNT_LIMIT:
        decline(f"at most {COUNT_LIMIT} boundaries are compared one by one, got {size}")
    return find_positions(boundaries, input, size, right=right, out_int32=out_int32)
