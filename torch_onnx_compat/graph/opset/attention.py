"""Lowering rule: Attention, as matrix products and a softmax.

Math:   softmax(q k^T * scale + mask) v, where q and k are scaled by sqrt(scale) each; a row that is masked altogether
        is zero.
Source: https://onnx.ai/onnx/operators/onnx__Attention.html (opset 23)
"""

from __future__ import annotations

import math

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, input_at, lowering


@lowering("Attention", below=23)
def attention(op: Builder, node: ir.Node) -> Outputs:
    """Supports (N, H, S, D) and (N, S, H * D), grouped heads, masks, cached keys and values."""
    q, k, v = (_split_heads(op, node, index) for index in range(3))
    k, v = present = [_with_past(op, value, input_at(node, index)) for value, index in ((k, 4), (v, 5))]
    scale = math.sqrt(attribute(node, "scale") or 1 / math.sqrt(_static_size(op, q, 3)))
    k, v = (_repeat_heads(op, value, _static_size(op, q, 1)) for value in (k, v))
    scores = op.MatMul(op.Mul(q, scale), op.Transpose(op.Mul(k, scale), perm=[0, 1, 3, 2]))
    cap = attribute(node, "softcap", 0.0)
    scores = op.Mul(op.Tanh(op.Div(scores, cap)), cap) if cap else scores
    weights = _softmax(op, node, _apply_mask(op, node, scores, op.size(k, 2)))
    y = op.MatMul(weights, v)
    given = node.inputs[0]
    assert given is not None
    y = y if op.rank(given) == 4 else op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
    return [y, *present][: len(node.outputs)]


def _split_heads(op: Builder, node: ir.Node, index: int) -> ir.Value:
    """Query, key or value as (N, H, S, D)."""
    x = node.inputs[index]
    assert x is not None
    if op.rank(x) == 4:
        return x
    heads = attribute(node, "q_num_heads" if index == 0 else "kv_num_heads")
    return op.Transpose(op.Reshape(x, [0, 0, heads, _static_size(op, x, 2) // heads]), perm=[0, 2, 1, 3])


def _with_past(op: Builder, x: ir.Value, past: ir.Value | None) -> ir.Value:
    return x if past is None else op.Concat(past, x, axis=2)


def _repeat_heads(op: Builder, x: ir.Value, heads: int) -> ir.Value:
    """Repeats each head of the keys or values for its group of query heads."""
    own = _static_size(op, x, 1)
    if own == heads:
        return x
    grouped = op.Expand(op.Unsqueeze(x, [2]), [1, 1, heads // own, 1, 1])
    return op.Reshape(grouped, [0, heads, -1, _static_size(op, x, 3)])


def _apply_mask(op: Builder, node: ir.Node, scores: ir.Value, keys: int | None) -> ir.Value:
    mask = input_at(node, 3)
    never = op.constant(-math.inf, op.dtype(scores))
    if mask is not None:
        if keys is not None and op.size(mask, -1) not in (None, 1, keys):
            op.refuse(f"a mask of {op.size(mask, -1)} of {keys} keys")
        is_bool = op.dtype(mask) == ir.DataType.BOOL
        scores = op.Where(mask, scores, never) if is_bool else op.Add(scores, mask)
    if attribute(node, "is_causal", 0):
        sizes = [op.Gather(op.Shape(scores), op.constant(axis, ir.DataType.INT64)) for axis in (2, 3)]
        rows, columns = (op.Range(op.constant(0, ir.DataType.INT64), size, 1) for size in sizes)
        past = input_at(node, 4)
        rows = rows if past is None else op.Add(rows, op.Slice(op.Shape(past), [2], [3]))
        scores = op.Where(op.Greater(columns, op.Reshape(rows, [-1, 1])), never, scores)
    return scores


def _softmax(op: Builder, node: ir.Node, scores: ir.Value) -> ir.Value:
    dtype = op.dtype(scores)
    precision = ir.DataType(attribute(node, "softmax_precision", dtype))
    wide = scores if precision == dtype else op.Cast(scores, to=int(precision))
    weights = op.Softmax(wide, axis=-1)
    weights = weights if precision == dtype else op.Cast(weights, to=int(dtype))
    if input_at(node, 3) is None:
        return weights
    empty = op.Equal(op.ReduceMax(scores, [-1]), op.constant(-math.inf, dtype))
    return op.Where(empty, op.constant(0, dtype), weights)


def _static_size(op: Builder, x: ir.Value, axis: int) -> int:
    size = op.size(x, axis)
    if size is None:
        op.refuse(f"the size of axis {axis} of {x.name!r} is unknown")
    return size
