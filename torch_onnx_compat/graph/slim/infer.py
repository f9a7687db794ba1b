"""What a node's results are like: shapes, element types, and the numbers of those that compute with sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from torch_onnx_compat.graph.slim import layers, movements
from torch_onnx_compat.graph.slim.arithmetic import numbers_of_result
from torch_onnx_compat.graph.slim.facts import Facts, Shape, broadcast

_SHAPES = movements.SHAPES | layers.SHAPES
_SEVERAL = movements.SEVERAL | layers.SEVERAL

_SAME_AS_FIRST = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli Cast CastLike Ceil Celu Clip Cos Cosh CumSum
    DequantizeLinear Dropout Elu Erf Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization
    MeanVarianceNormalization Mish Neg Not QuantizeLinear RMSNormalization RandomNormalLike RandomUniformLike
    Reciprocal Relu ReverseSequence Round ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus
    Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu""".split()  # noqa: SIM905
)
"""Operators whose first result has the shape of the first operand."""

_ELEMENTWISE = frozenset(
    """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min
    Mod Mul Or PRelu Pow Sub Sum Where Xor""".split()  # noqa: SIM905
)
"""Operators whose operands are broadcast."""

_KNOWN = _SAME_AS_FIRST | _ELEMENTWISE | set(_SHAPES) | set(_SEVERAL)


def infer(facts: Facts, node: ir.Node) -> None:
    """Notes shapes and numbers of a node's results; those of its operands are known, those of constants are read."""
    for value in node.outputs:
        facts.set(value, None)
        facts.set_dtype(value, value.dtype)
    if node.domain or not node.outputs:
        return
    dtype = _dtype(facts, node)
    if dtype is not None:
        facts.set_dtype(node.outputs[0], dtype)
    try:
        shapes = _shapes(facts, node)
        numbers = numbers_of_result(facts, node, shapes[0]) if shapes else None
    except (IndexError, ValueError, ZeroDivisionError):
        return  # The node is not valid, such as one with an axis that its input has not; engines say so better.
    for value, shape in zip(node.outputs, shapes, strict=False):
        facts.set(value, shape)
    if numbers is not None:
        facts.set(node.outputs[0], shapes[0], numbers)


def _shapes(facts: Facts, node: ir.Node) -> Sequence[Shape | None]:
    """The shapes of a node's first results."""
    if node.op_type in _SAME_AS_FIRST:
        return [facts.shape(node.inputs[0])]
    if node.op_type in _ELEMENTWISE:
        return [broadcast(facts, *map(facts.shape, node.inputs))]
    if node.op_type in _SEVERAL:
        return _SEVERAL[node.op_type](facts, node)
    rule = _SHAPES.get(node.op_type)
    return [] if rule is None else [rule(facts, node)]


def _dtype(facts: Facts, node: ir.Node) -> ir.DataType | None:
    """The element type of a node's first result; None for operators of which nothing is known here."""
    if node.domain:
        return None
    if node.op_type in _WITH_DTYPE:
        return _WITH_DTYPE[node.op_type](facts, node)
    if node.op_type in _KNOWN:
        return facts.dtype(node.inputs[0])
    return None


def _filled_dtype(facts: Facts, node: ir.Node) -> ir.DataType:
    value = node.attributes.get("value")
    return ir.DataType.FLOAT if value is None else value.as_tensor().dtype


_WITH_DTYPE: dict[str, Callable[[Facts, ir.Node], ir.DataType | None]] = {
    "Cast": lambda _, node: ir.DataType(node.attributes.get_int("to", 0)),
    "CastLike": lambda facts, node: facts.dtype(node.inputs[1]),
    "ConstantOfShape": _filled_dtype,
    "DequantizeLinear": lambda facts, node: facts.dtype(node.inputs[1]),
    "Where": lambda facts, node: facts.dtype(node.inputs[1]),
    **dict.fromkeys(("Shape", "Size", "NonZero", "ArgMax", "ArgMin"), lambda *_: ir.DataType.INT64),
    **dict.fromkeys(
        ("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"),
        lambda *_: ir.DataType.BOOL,
    ),
    **dict.fromkeys(("Bernoulli", "QuantizeLinear", "RandomNormalLike", "RandomUniformLike"), lambda *_: None),
}
