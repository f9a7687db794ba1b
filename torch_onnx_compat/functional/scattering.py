"""Scattering with a reduction in ONNX operators.

Math:   without the scattered-to values themselves, each place is first set to what the reduction leaves unchanged: 0
        for sums, 1 for products, the least value for maxima. A mean is a sum over a count, which are scattered alike.
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
"""

from __future__ import annotations

import torch

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.ops import Number, Ops, Value

REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def reduced(
    op: Ops, x: Value, axis: int, index: Value, src: Value, reduce: str, include_self: bool, dtype: torch.dtype
) -> Value:
    """Reduces src into x along an axis; `index` and `src` have one shape, all have the element type `dtype`.

    Raises:
        UnsupportedError: Maxima or minima before opset 18.
    """
    reduction = REDUCTIONS[reduce]
    if reduction in ("max", "min") and op.opset < 18:
        raise UnsupportedError(
            f"scattering with reduce={reduce!r} needs opset 18 or later, got {op.opset}; raise opset_version."
        )
    base = x
    if not include_self:
        neutral = op.Expand(op.constant(_neutral(reduction, dtype), dtype), op.Shape(index))
        base = op.ScatterElements(x, index, neutral, axis=axis)
    total = op.ScatterElements(base, index, src, axis=axis, reduction=reduction)
    if reduce != "mean":
        return total
    one = op.constant(1, dtype)
    ones, count = op.Expand(one, op.Shape(index)), op.Expand(one, op.Shape(x))
    if not include_self:
        count = op.ScatterElements(count, index, neutral, axis=axis)
    count = op.ScatterElements(count, index, ones, axis=axis, reduction="add")
    mean = op.Div(total, count)
    if dtype.is_floating_point:
        return mean
    too_high = op.Greater(op.Mul(mean, count), total)
    return op.Sub(mean, op.Where(too_high, one, op.constant(0, dtype)))


def _neutral(reduction: str, dtype: torch.dtype) -> Number:
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype.is_floating_point:
        return float("-inf") if reduction == "max" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduction == "max" else info.max


def fitted(op: Ops, src: Value, index: Value) -> Value:
    """The part of `src` that `index` has places for; torch ignores the rest, ONNX has no rest."""
    if not is_longer(op, src, index):
        return src
    rank = op.rank(index)
    return op.Slice(src, [0] * (rank or 0), op.Shape(index), list(range(rank or 0)))


def is_longer(op: Ops, src: Value, index: Value) -> bool:
    """Whether `src` may be larger than `index`; axes that both vary are taken to be equal."""
    sizes, wanted = op.shape(src), op.shape(index)
    if sizes is None or wanted is None:
        return False
    return any(a != b for a, b in zip(sizes, wanted, strict=True))


def spread(op: Ops, index: Value, axis: int, rank: int, like: Value) -> Value:
    """A vector of places along an axis as one place for each element of `like`."""
    index = op.Reshape(op.cast(index, torch.int64), [-1])
    if axis + 1 < rank:
        index = op.Unsqueeze(index, list(range(1, rank - axis)))
    return op.Expand(index, op.Shape(like)) if rank > 1 else index
