"""Lowering rules: activations and softmaxes.

Source: https://onnx.ai/onnx/operators/ (the formulas of Gelu, HardSwish, Mish, Swish; the versions of Softmax).
"""

from __future__ import annotations

import math

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, lowering


@lowering("Swish", below=24)
def swish(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x * sigmoid(alpha * x)."""
    (x,) = node.inputs
    alpha = attribute(node, "alpha", 1.0)
    return op.Mul(x, op.Sigmoid(x if alpha == 1 else op.Mul(x, alpha)))


@lowering("Gelu", below=20)
def gelu(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x * (1 + erf(x / sqrt(2))) * 0.5, in the order that onnxruntime fuses again, or the tanh form."""
    (x,) = node.inputs
    if attribute(node, "approximate", "none") == "none":
        inner = op.Erf(op.Div(x, math.sqrt(2)))
    else:
        cubic = op.Add(x, op.Mul(op.Pow(x, 3), 0.044715))
        inner = op.Tanh(op.Mul(cubic, math.sqrt(2 / math.pi)))
    return op.Mul(op.Mul(x, op.Add(inner, 1)), 0.5)


@lowering("Mish", below=18)
def mish(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x * tanh(softplus(x))."""
    (x,) = node.inputs
    return op.Mul(x, op.Tanh(op.Softplus(x)))


@lowering("HardSwish", below=14)
def hard_swish(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x * clip(x / 6 + 0.5, 0, 1)."""
    (x,) = node.inputs
    return op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5))


@lowering("Relu", below=14)
def relu_of_integers(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes max(x, 0); until opset 13 Relu takes floating-point tensors only."""
    (x,) = node.inputs
    assert x is not None
    return None if op.dtype(x).is_floating_point() else op.Max(x, 0)


@lowering("Softmax", "LogSoftmax", "Hardmax", below=13)
def softmax_over_last_axis(op: Builder, node: ir.Node) -> Outputs:
    """Moves its axis to the end: until opset 12 all axes from `axis` on are taken together, which is one axis there."""
    (x,) = node.inputs
    assert x is not None
    axis: int = attribute(node, "axis", -1)
    if axis == -1 or axis == op.rank(x) - 1:
        return op.clone(node, [x], axis=-1)
    order = list(range(op.rank(x)))
    order[axis], order[-1] = order[-1], order[axis]
    (moved,) = op.clone(node, [op.Transpose(x, perm=order)], axis=-1)
    return op.Transpose(moved, perm=order)


@lowering("Dropout", below=12)
def dropout_in_inference(op: Builder, node: ir.Node) -> ir.Value:
    """Returns the input, as Dropout does without training_mode; the mask output has no counterpart."""
    x, _, training = (*node.inputs, None, None)[:3]
    if training is not None and any(op.ints(training, "training_mode")):
        op.refuse("training_mode=True")
    assert x is not None
    return x
