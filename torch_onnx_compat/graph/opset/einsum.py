"""Lowering rule: Einsum of one or more operands, as sums, transpositions and matrix products.

Math:   the letters of a pair of operands are batch (in both, and needed later), summed (in both only) or free (in one).
        The pair is therefore a MatMul of (batch, free, summed) by (batch, summed, free). More operands are contracted
        pair by pair.
Source: https://onnx.ai/onnx/operators/onnx__Einsum.html
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import attribute, lowering


@lowering("Einsum", below=12)
def einsum(op: Builder, node: ir.Node) -> ir.Value:
    """Supports equations without an ellipsis and without a letter twice in one term."""
    terms, result = _parse(op, attribute(node, "equation"))
    pending = [(value, term) for value, term in zip(node.inputs, terms, strict=True) if value is not None]
    left, letters = pending.pop(0)
    while pending:
        right, other = pending.pop(0)
        wanted = result + "".join(term for _, term in pending)
        left, letters = _product(op, left, letters, right, other, wanted)
    left, letters = _sum_out(op, left, letters, result)
    return _transpose(op, left, letters, result)


def _parse(op: Builder, equation: str) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:
        result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    terms = left.split(",")
    if "." in equation or any(len(set(term)) < len(term) for term in terms):
        op.refuse(f"equation {equation!r}")
    return terms, result


def _product(op: Builder, left: ir.Value, a: str, right: ir.Value, b: str, wanted: str) -> tuple[ir.Value, str]:
    """Contracts two operands by one MatMul; returns the product and the letters of its axes."""
    left, a = _sum_out(op, left, a, wanted + b)
    right, b = _sum_out(op, right, b, wanted + a)
    batch = "".join(c for c in a if c in b and c in wanted)
    summed = "".join(c for c in a if c in b and c not in wanted)
    rows = "".join(c for c in a if c not in b)
    columns = "".join(c for c in b if c not in a)
    x = _transpose(op, left, a, batch + rows + summed)
    y = _transpose(op, right, b, batch + summed + columns)
    product = op.MatMul(
        _merge_axes(op, x, len(batch), len(rows), len(summed)),
        _merge_axes(op, y, len(batch), len(summed), len(columns)),
    )
    if len(rows) != 1 or len(columns) != 1:
        sizes = [
            *_axis_sizes(op, product, 0, len(batch)),
            *_axis_sizes(op, x, len(batch), len(rows)),
            *_axis_sizes(op, y, len(batch) + len(summed), len(columns)),
        ]
        product = op.Reshape(product, op.Concat(*sizes, axis=0) if sizes else op.constant([], ir.DataType.INT64))
    return product, batch + rows + columns


def _sum_out(op: Builder, value: ir.Value, letters: str, kept: str) -> tuple[ir.Value, str]:
    axes = [axis for axis, letter in enumerate(letters) if letter not in kept]
    if not axes:
        return value, letters
    return op.ReduceSum(value, axes=axes, keepdims=0), "".join(c for c in letters if c in kept)


def _transpose(op: Builder, value: ir.Value, letters: str, order: str) -> ir.Value:
    return value if letters == order else op.Transpose(value, perm=[letters.index(c) for c in order])


def _merge_axes(op: Builder, value: ir.Value, batch: int, first: int, second: int) -> ir.Value:
    """Merges the `first` axes after the batch into one axis, and the `second` axes after those into another."""
    if first == second == 1:
        return value
    sizes = _axis_sizes(op, value, 0, batch)
    for start, count in ((batch, first), (batch + first, second)):
        size = _axis_sizes(op, value, start, count)
        sizes.append(op.ReduceProd(*size, keepdims=1) if size else op.constant([1], ir.DataType.INT64))
    return op.Reshape(value, op.Concat(*sizes, axis=0))


def _axis_sizes(op: Builder, value: ir.Value, start: int, count: int) -> list[ir.Value]:
    """Sizes of some axes, as a list of one 1-D tensor, or of none where there are no such axes."""
    return [op.Slice(op.Shape(value), [start], [start + count])] if count else []
