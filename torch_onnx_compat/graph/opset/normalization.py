"""Lowering rules: normalizations.

Source: https://onnx.ai/onnx/operators/ (LayerNormalization, RMSNormalization, GroupNormalization).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import attribute, input_at, lowering

_EPSILON = float(np.float32(1e-5))
"""The default as a float32, as ONNX holds attributes; as a double, 1e-5 differs from it in the 13th digit of results.
"""


@lowering("RMSNormalization", below=23)
def rms_normalization(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x / sqrt(mean(x^2) + epsilon) * scale; onnxruntime fuses this form, with Pow and Div instead of Mul."""
    x, scale = _values(node, 2)
    wide = _cast_to_stash_type(op, node, x)
    mean = op.ReduceMean(op.Pow(wide, 2), _trailing_axes(op, node, x), keepdims=1)
    normal = op.Div(wide, op.Sqrt(op.Add(mean, attribute(node, "epsilon", _EPSILON))))
    return op.Mul(_cast_like(op, normal, x), scale)


@lowering("LayerNormalization", below=17)
def layer_normalization(op: Builder, node: ir.Node) -> Sequence[ir.Value]:
    """Writes (x - mean) / sqrt(var + epsilon) * scale + bias; onnxruntime fuses this form, with Pow instead of Mul."""
    x, scale = _values(node, 2)
    bias = input_at(node, 2)
    axes = _trailing_axes(op, node, x)
    wide = _cast_to_stash_type(op, node, x)
    mean = op.ReduceMean(wide, axes=axes, keepdims=1)
    centred = op.Sub(wide, mean)
    variance = op.ReduceMean(op.Pow(centred, 2), axes=axes, keepdims=1)
    deviation = op.Sqrt(op.Add(variance, attribute(node, "epsilon", _EPSILON)))
    y = op.Mul(_cast_like(op, op.Div(centred, deviation), x), scale)
    y = op.Add(y, bias) if bias is not None else y
    return (y,) if len(node.outputs) == 1 else (y, mean, op.Reciprocal(deviation))[: len(node.outputs)]


@lowering("GroupNormalization", below=21)
def group_normalization_per_channel(op: Builder, node: ir.Node) -> ir.Value:
    """Scales after normalizing: from opset 21 scale and bias are per channel; InstanceNormalization's are per group."""
    x, scale, bias = _values(node, 3)
    wide = _cast_to_stash_type(op, node, x)
    groups, dtype = attribute(node, "num_groups"), op.dtype(wide)
    ones, zeros = op.constant([1] * groups, dtype), op.constant([0] * groups, dtype)
    normal = _cast_like(op, _instance_normalization(op, node, wide, ones, zeros), x)
    spatial = list(range(1, op.rank(x) - 1))
    return op.Add(op.Mul(normal, op.Unsqueeze(scale, spatial)), op.Unsqueeze(bias, spatial))


@lowering("GroupNormalization", below=20)
@lowering("GroupNormalization", below=19)
@lowering("GroupNormalization", below=18)
def group_normalization_per_group(op: Builder, node: ir.Node) -> ir.Value:
    """Writes InstanceNormalization, at 19 and 18 too: the form with a scale and bias per group is deprecated."""
    return _instance_normalization(op, node, *_values(node, 3))


def _instance_normalization(op: Builder, node: ir.Node, x: ir.Value, scale: ir.Value, bias: ir.Value) -> ir.Value:
    """Normalizes (N, C, ...) over groups of channels by folding each group into one channel."""
    grouped = op.Reshape(x, [0, attribute(node, "num_groups"), -1])
    normal = op.InstanceNormalization(grouped, scale, bias, epsilon=attribute(node, "epsilon", _EPSILON))
    return op.Reshape(normal, op.Shape(x))


def _values(node: ir.Node, count: int) -> list[ir.Value]:
    """The leading inputs, which the operator requires."""
    return [value for value in node.inputs[:count] if value is not None]


def _trailing_axes(op: Builder, node: ir.Node, x: ir.Value) -> list[int]:
    axis: int = attribute(node, "axis", -1)
    return list(range(axis, 0 if axis < 0 else op.rank(x)))


def _cast_to_stash_type(op: Builder, node: ir.Node, x: ir.Value) -> ir.Value:
    """The input in the precision of `stash_type`; double is not narrowed, just as kernels do not narrow it."""
    stash = ir.DataType(attribute(node, "stash_type", ir.DataType.FLOAT))
    return x if op.dtype(x) in (stash, ir.DataType.DOUBLE) else op.Cast(x, to=int(stash))


def _cast_like(op: Builder, value: ir.Value, like: ir.Value) -> ir.Value:
    return value if value.dtype == like.dtype else op.Cast(value, to=int(op.dtype(like)))
