"""Reductions of axes, of their beginnings (running sums, products and extremes) and of neighbouring cells."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional.rows import accumulate_rows, reduce_rows
from torch_onnx_compat.tracing import constant, static_size

EXTREME = Declaration(needed_on=("dynamo",), exactness=Exactness.BITWISE)
TORCHSCRIPT_BITWISE = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
TORCHSCRIPT_ROUNDING = Declaration(needed_on=("torchscript",), exactness=Exactness.ROUNDING)
BOTH_BITWISE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
BOTH_ROUNDING = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)


# Whole axes


@symbolic("aten::amax", **EXTREME)
def amax(op: Ops, self: Value, dim: list[int] = [], keepdim: bool = False) -> Value:  # noqa: B006
    """Greatest value of all; stock dynamo's translation asks for axes.

    Schema: amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__ReduceMax.html
    """
    return NotImplemented if dim else op.ReduceMax(self, keepdims=int(keepdim))


@symbolic("aten::amin", **EXTREME)
def amin(op: Ops, self: Value, dim: list[int] = [], keepdim: bool = False) -> Value:  # noqa: B006
    """Least value of all; stock dynamo's translation asks for axes.

    Schema: amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__ReduceMin.html
    """
    return NotImplemented if dim else op.ReduceMin(self, keepdims=int(keepdim))


@decomposition(torch.count_nonzero, **TORCHSCRIPT_BITWISE)
def count_nonzero_to_sum(input: Tensor, dim: Any = None) -> Tensor:
    """Number of non-zero cells, NaN among them; stock TorchScript has no symbolic for it."""
    nonzero = (input != 0).to(torch.int64)
    return nonzero.sum() if dim is None else nonzero.sum(dim)


@decomposition(torch.nansum, **TORCHSCRIPT_ROUNDING)
def nansum_to_sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of what is not NaN; stock TorchScript has no symbolic for it."""
    x = torch.where(torch.isnan(input), torch.zeros_like(input), input) if input.is_floating_point() else input
    return x.sum(dtype=dtype) if dim is None else x.sum(dim, keepdim, dtype=dtype)


HALF_OVERFLOW = 65520
"""Magnitude from which on float16 is infinite."""


@decomposition(torch.nanmean, **BOTH_ROUNDING)
def nanmean_to_sum(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Mean of what is not NaN; stock TorchScript has no symbolic, stock dynamo's float16 does not overflow."""
    is_nan = torch.isnan(input)
    x, counted = torch.where(is_nan, torch.zeros_like(input), input), torch.logical_not(is_nan)
    if input.dtype != torch.float16:
        counted = counted.to(input.dtype)
        return x.sum() / counted.sum() if dim is None else x.sum(dim, keepdim) / counted.sum(dim, keepdim)
    # onnxruntime sums in float32 and leaves out the casts, so that it does not overflow where torch does.
    x, counted = x.float(), counted.float()
    total, count = (x.sum(), counted.sum()) if dim is None else (x.sum(dim, keepdim), counted.sum(dim, keepdim))
    return (torch.where(total.abs() >= HALF_OVERFLOW, total * math.inf, total) / count).to(input.dtype)


@decomposition(torch.sum, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def sum_of_half(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of 16-bit floats in float32; stock dynamo leaves the result in float32."""
    if input.dtype not in (torch.float16, torch.bfloat16) or dtype not in (None, input.dtype):
        return NotImplemented
    x = input.float()
    return (x.sum() if dim is None else x.sum(dim, keepdim)).to(input.dtype)


# Integers, which onnxruntime adds and multiplies in floating point


HALF_WIDTH = 2**31


@decomposition(torch.sum, needed_on=("torchscript", "dynamo"), targets=("onnxruntime",), exactness=Exactness.BITWISE)
def sum_of_int64(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of int64, which onnxruntime's ReduceSum rounds beyond 2^53.

    Math: x = h 2^31 + l with |l| < 2^31; sums of h and of l stay below 2^53 for 2^20 numbers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sum.html; ReduceAggregatorSum of onnxruntime's
            core/providers/cpu/reduction/reduction_ops.h
    """
    if input.dtype != torch.int64 or dtype not in (None, torch.int64) or input.dim() == 0:
        return NotImplemented
    high = torch.div(input, HALF_WIDTH, rounding_mode="trunc")
    low = input - high * HALF_WIDTH
    high, low = (part.sum() if dim is None else part.sum(dim, keepdim) for part in (high, low))
    return high * HALF_WIDTH + low


@decomposition(torch.sum, needed_on=("dynamo",), targets=("onnxruntime",), exactness=Exactness.BITWISE)
def sum_of_narrow_integers(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Sum in a narrow integer type, at whose ends onnxruntime's ReduceSum stops, where torch begins again.

    Math: a sum modulo 2^32 is that of int64, of which the lowest bits are kept.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sum.html; ReduceAggregatorSum of onnxruntime's
            core/providers/cpu/reduction/reduction_ops.h
    """
    if dtype not in (torch.int32, torch.int16, torch.int8, torch.uint8):
        return NotImplemented
    x = input.to(dtype).to(torch.int64)
    return (x.sum() if dim is None else x.sum(dim, keepdim)).to(dtype)


@decomposition(torch.prod, needed_on=("torchscript", "dynamo"), targets=("onnxruntime",), exactness=Exactness.BITWISE)
def prod_of_integers(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Product of integers, which onnxruntime's ReduceProd rounds beyond 2^53 and does not let overflow.

    Math: the product of n numbers is that of the first n // 2 times the next n // 2, multiplied the same way, and of
          what is left. Along an axis of varying size, one row is multiplied after the other. The lowest bits of a
          product of int64 are the product of narrower integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.prod.html; ReduceAggregatorProd of onnxruntime's
            core/providers/cpu/reduction/reduction_ops.h
    """
    wanted = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else torch.int64)
    if wanted not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8) or input.dtype == torch.bool:
        return NotImplemented
    axes = range(input.dim()) if dim is None else [dim] if input.dim() else []
    sizes = {axis: static_size(input, axis) for axis in axes}
    varying = [axis for axis, size in sizes.items() if size is None]
    n = math.prod(size for size in sizes.values() if size is not None)
    if not varying and n < 2:
        return NotImplemented
    x = input if input.dtype == wanted else input.to(wanted)
    x = x if wanted == torch.int64 else x.to(torch.int64)
    for axis in reversed(varying):
        rows = x.movedim(axis, 0)
        ones = rows.new_ones((1, *rows.shape[1:]))  # a Scan has one row at least
        x = reduce_rows(torch.mul, torch.cat([ones, rows]), ones[0])
    if dim is None:
        x = _multiply_halves(x.reshape(-1), n) if n > 1 else x.reshape(())
    elif not varying:
        x = _multiply_halves(x.movedim(dim, 0), n)
    x = x if wanted == torch.int64 else x.to(wanted)
    return x.unsqueeze(dim) if keepdim and dim is not None else x


def _multiply_halves(x: Tensor, n: int) -> Tensor:
    """The product of the n rows of a tensor."""
    rest = []
    while n > 1:
        if n % 2:
            rest.append(x[n - 1 : n])
        x, n = x[: n // 2] * x[n // 2 : n // 2 * 2], n // 2
    return functools.reduce(torch.mul, rest, x)[0]


# Beginnings of an axis: cell i of the result reduces cells 0 to i


FEW = 8
"""Elements whose sum is off by no more than roundings."""


@decomposition(
    torch.cumsum, needed_on=("torchscript", "dynamo"), targets=("onnxruntime",), exactness=Exactness.ROUNDING
)
def cumsum_in_double(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Running sum of more than a few numbers; integers and float64 are left to torch.

    Math: torch keeps the running sum in double precision and rounds what it writes; onnxruntime rounds the running sum
          itself. After 24,000 steps of a phase of 0.05 radians, one second of a vocoder, it is 0.0035 radians off.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cumsum.html; cumsum_cpu_kernel of ATen's
            native/cpu/ReduceOpsKernel.cpp
    """
    wanted = dtype or input.dtype
    if not wanted.is_floating_point or wanted is torch.float64 or input.dim() == 0:
        return NotImplemented
    size = static_size(input, dim)
    if size is not None and size <= FEW:
        return NotImplemented
    return torch.cumsum(input.to(wanted).to(torch.float64), dim).to(wanted)


@decomposition(torch.cumsum, **TORCHSCRIPT_BITWISE)
def cumsum_of_integers(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Running sum; stock TorchScript forgets its element type, and that a scalar has no axis.

    Math: sums of integers are int64.
    """
    wanted = dtype or (input.dtype if input.is_floating_point() else torch.int64)
    if input.dim() == 0:
        return input.to(wanted).clone()
    if input.dtype in (wanted, torch.int64):
        return NotImplemented
    if wanted.is_floating_point:
        return torch.cumsum(input.to(wanted), dim)
    return torch.cumsum(input.to(wanted).to(torch.int64), dim).to(wanted)  # whose default for any integers is int64


@decomposition(torch.cumprod, **BOTH_ROUNDING)
def cumprod_to_prod(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Running product; neither exporter has an operator for it.

    Declines: float64 along an axis of varying size, since onnxruntime has no product of doubles.
    """
    if dtype is None:
        dtype = input.dtype if input.is_floating_point() else torch.int64
    x = input.to(dtype)
    if x.dim() == 0:
        return x.clone()
    size = static_size(input, dim)
    if size is None and dtype == torch.float64:
        decline(f"float64 needs a fixed size of axis {dim}; fix it or convert to float32")
    if dtype == torch.int64:  # onnxruntime's ReduceProd rounds, and stops at the type's ends
        if size is None:
            rows = x.movedim(dim, 0)
            return accumulate_rows(torch.mul, rows, torch.ones_like(rows[0])).movedim(0, dim)
        return _scan_by_shifts(x, dim, size, torch.mul)
    return prefix_scan(x, dim, size, neutral=1, reduce=lambda y: y.prod(-1, dtype=dtype), combine=torch.mul)


@decomposition(torch.cummax, **BOTH_BITWISE)
def cummax_to_amax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Running maximum with its indices; neither exporter has an operator for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.cummax.html; ATen/native/ReduceOps.cpp
    """
    return torch.return_types.cummax(_extreme_and_index(input, dim, largest=True))


@decomposition(torch.cummin, **BOTH_BITWISE)
def cummin_to_amin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Running minimum with its indices; neither exporter has an operator for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.cummin.html; ATen/native/ReduceOps.cpp
    """
    return torch.return_types.cummin(_extreme_and_index(input, dim, largest=False))


@decomposition(torch.logcumsumexp, **BOTH_ROUNDING)
def logcumsumexp_to_logsumexp(input: Tensor, dim: int) -> Tensor:
    """Running logsumexp; stock TorchScript has none, stock dynamo takes the logarithm of sums that overflow.

    Math: the cells behind hold -inf, whose exponential is 0.
    """
    if input.dim() == 0:
        return input.clone()
    size = static_size(input, dim)
    return prefix_scan(input, dim, size, neutral=-float("inf"), reduce=lambda y: y.logsumexp(-1))


TRIANGLE_LIMIT = 64
"""Length up to which onnxruntime computes the n * n cells no slower than the shifted copies."""


def prefix_scan(
    x: Tensor,
    dim: int,
    size: int | None,
    *,
    neutral: float,
    reduce: Callable[[Tensor], Tensor],
    combine: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Reduces the beginnings of an axis.

    Math: of a short axis, or one of unknown size, each cell sees a copy of the axis in which the cells behind it hold
          the neutral element: one reduction over n * n cells. A long axis is combined with itself shifted by 1, 2,
          4, ... cells, after which every cell has seen 1, 3, 7, ... of those before it.
    Source: Hillis and Steele, Data parallel algorithms, 1986, https://doi.org/10.1145/7902.7903

    Args:
        x: Any tensor with axes.
        dim: The axis.
        size: Its size, None if it varies.
        neutral: Element that leaves the reduction unchanged.
        reduce: Reduces the last axis.
        combine: Reduces two tensors, cell by cell; None where only `reduce` will do.
    """
    if combine is not None and size is not None and size > TRIANGLE_LIMIT:
        return _scan_by_shifts(x, dim, size, combine)
    last = x.transpose(dim, -1)
    if size is None:
        cell = torch.arange(x.shape[dim], device=x.device)
        seen = cell <= cell.unsqueeze(1)
    else:
        seen = constant(np.tril(np.ones((size, size), dtype=bool)), like=x, dtype=torch.bool)
    copies = torch.where(seen, last.unsqueeze(-2), constant(neutral, like=x))
    return reduce(copies).transpose(dim, -1)


def _scan_by_shifts(x: Tensor, dim: int, size: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    shift = 1
    while shift < size:
        ahead, behind = x.narrow(dim, shift, size - shift), x.narrow(dim, 0, size - shift)
        x = torch.cat((x.narrow(dim, 0, shift), combine(behind, ahead)), dim)
        shift *= 2
    return x


def _extreme_and_index(x: Tensor, dim: int, *, largest: bool) -> tuple[Tensor, Tensor]:
    """Running maximum or minimum, and the index of the cell that set it, the last one of several.

    Math: a cell sets the extreme where it equals its running extreme, or is NaN. A NaN stays the running extreme from
          there on.
    """
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    size = static_size(x, dim)
    values = _prefix_extreme(x, dim, size, largest)
    if x.is_floating_point():
        # Engines' reductions take a NaN or leave it, by its place. Only what comes after one is set here.
        nan_before = torch.isnan(x).to(torch.float32).cumsum(dim) > 0
        values = torch.where(nan_before, constant(float("nan"), like=x), values)
    cell = torch.arange(x.shape[dim], device=x.device) if size is None else constant(range(size), x, torch.int64)
    cell = _along(cell, dim, x)
    is_record = x == values
    if x.is_floating_point():
        is_record = is_record | torch.isnan(x)
    records = torch.where(is_record, cell, constant(0, x, torch.int64))
    return values, _prefix_extreme(records, dim, size, largest=True)


def _prefix_extreme(x: Tensor, dim: int, size: int | None, largest: bool) -> Tensor:
    if x.is_floating_point():
        neutral = -float("inf") if largest else float("inf")
    else:
        limits = torch.iinfo(x.dtype)
        neutral = limits.min if largest else limits.max
    return prefix_scan(
        x,
        dim,
        size,
        neutral=neutral,
        reduce=(lambda y: y.amax(-1)) if largest else (lambda y: y.amin(-1)),
        combine=torch.maximum if largest else torch.minimum,
    )


def _along(row: Tensor, dim: int, x: Tensor) -> Tensor:
    """A row (n,) laid along an axis of x, for broadcasting."""
    return row.reshape([-1] + [1] * (x.dim() - 1 - dim % x.dim()))


# Neighbours


@decomposition(torch.diff, **TORCHSCRIPT_BITWISE)
def diff_to_slices(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours; stock TorchScript has no symbolic for it.

    Math: y[i] = x[i + 1] - x[i]; of booleans, whether they differ.
    """
    parts = [part for part in (prepend, input, append) if part is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        ahead, behind = _neighbours(x, dim)
        x = ahead != behind if x.dtype == torch.bool else ahead - behind
    return x.clone() if x is input else x


@decomposition((torch.trapezoid, torch.trapz), **BOTH_ROUNDING)
def trapezoid_to_sum(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integral by the trapezoidal rule; stock TorchScript has no symbolic for it, dynamo's file fails on no heights.

    Declines: abscissae that have neither one axis nor those of the heights.
    """
    return _trapezoids(y, x, dx, dim).sum(dim)


@decomposition(torch.cumulative_trapezoid, **TORCHSCRIPT_ROUNDING)
def cumulative_trapezoid_to_cumsum(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """Running integral by the trapezoidal rule; stock TorchScript has no symbolic for it.

    Declines: abscissae that have neither one axis nor those of the heights.
    """
    return _trapezoids(y, x, dx, dim).cumsum(dim)


def _trapezoids(y: Tensor, x: Tensor | None, dx: float | None, dim: int) -> Tensor:
    """Area between each two neighbours of an axis.

    Math: (y[i] + y[i + 1]) / 2 * (x[i + 1] - x[i]).

    Args:
        y: Heights.
        x: Abscissae of one axis, (n,), or of every height; None if they are `dx` apart.
        dx: Distance of the abscissae, by default 1.
        dim: The axis.
    """
    ahead, behind = _neighbours(y, dim)
    heights = ahead + behind
    if x is None:
        return heights * ((1.0 if dx is None else dx) / 2)
    if x.dim() == 1:
        x = _along(x, dim, y)
    elif x.dim() != y.dim():
        decline(f"x must have 1 or {y.dim()} axes, got {x.dim()}")
    ahead, behind = _neighbours(x, dim % y.dim() - y.dim())
    return heights * (ahead - behind) / 2


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All cells of an axis but the first, and all but the last."""
    before = (slice(None),) * (dim % x.dim())
    first, last = (*before, slice(1, None)), (*before, slice(-1))
    return x[first], x[last]
