"""Lowering rules: operators that lower opsets define for fewer element types, and casts.

Source: https://onnx.ai/onnx/operators/ (the type constraints in the version history of each operator).
"""

from __future__ import annotations

import functools

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, lowering

_LARGEST_PRODUCT = 4
"""Integer powers up to this one become products."""


@lowering("Mod", below=28)
def mod_of_floats(op: Builder, node: ir.Node) -> None:
    """Refuses: until opset 27 a remainder that rounds down is defined for integers only."""
    (x, _) = node.inputs
    assert x is not None
    if not attribute(node, "fmod", 0) and op.dtype(x).is_floating_point():
        op.refuse("a remainder of floating-point numbers with fmod=0")


@lowering("Cast", "CastLike", below=24)
def cast_round_mode(_: Builder, node: ir.Node) -> None:
    """Drops the attribute: it matters only for float8e8m0, which came with it."""
    node.attributes.pop("round_mode", None)


@lowering("Cast", "CastLike", "QuantizeLinear", below=19)
def cast_saturate(_: Builder, node: ir.Node) -> None:
    """Drops the attribute: it matters only for float8 types, which came with it."""
    node.attributes.pop("saturate", None)


@lowering("CastLike", below=15)
def cast_like(op: Builder, node: ir.Node) -> ir.Value:
    """Cast, where the other input's type is known."""
    x, like = node.inputs
    assert like is not None
    return op.Cast(x, to=int(op.dtype(like)))


@lowering("IsInf", below=20)
def is_inf_of_half(op: Builder, node: ir.Node) -> Outputs:
    """Casts to float, which holds every half exactly: until opset 19 IsInf takes float and double only."""
    (x,) = node.inputs
    assert x is not None
    if op.dtype(x) in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    return op.clone(node, [op.Cast(x, to=int(ir.DataType.FLOAT))])


@lowering("BitwiseNot", below=18)
def bitwise_not(op: Builder, node: ir.Node) -> ir.Value:
    """Subtracts x from the number whose bits are all set; no bit borrows from another."""
    (x,) = node.inputs
    assert x is not None
    dtype = op.dtype(x)
    return op.Sub(op.constant(-1 if dtype.is_signed() else 2**dtype.bitwidth - 1, dtype), x)


@lowering("QuantizeLinear", "DequantizeLinear", below=13)
def quantization_per_tensor(op: Builder, node: ir.Node) -> None:
    """Refuses a scale per channel: until opset 12 there is one scale for the whole tensor, and no axis."""
    scale = node.inputs[1]
    assert scale is not None
    if op.rank(scale) != 0 and op.size(scale, 0) != 1:
        op.refuse("a scale per channel")
    node.attributes.pop("axis", None)


@lowering("GreaterOrEqual", "LessOrEqual", below=12)
def comparison_or_equal(op: Builder, node: ir.Node) -> ir.Value:
    """Writes a > b or a == b; the negation of a < b would be true for NaN."""
    strict = op.Greater if node.op_type == "GreaterOrEqual" else op.Less
    return op.Or(strict(*node.inputs), op.Equal(*node.inputs))


@lowering("Max", "Min", below=12)
def extremum_of_integers(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes comparisons: until opset 11 Max and Min take floating-point tensors only."""
    values = [value for value in node.inputs if value is not None]
    if op.dtype(values[0]).is_floating_point():
        return None
    return functools.reduce(functools.partial(_maximum if node.op_type == "Max" else _minimum, op), values)


@lowering("Clip", below=12)
def clip_of_integers(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes comparisons: until opset 11 Clip takes floating-point tensors only."""
    x, low, high = (*node.inputs, None, None)[:3]
    assert x is not None
    if op.dtype(x).is_floating_point():
        return None
    above = x if low is None else _maximum(op, x, low)
    return above if high is None else _minimum(op, above, high)


@lowering("Pow", below=12)
def pow_of_one_type(op: Builder, node: ir.Node) -> ir.Value | None:
    """Casts the exponent or multiplies: until opset 11 base and exponent are floating-point and of one type."""
    x, exponent = node.inputs
    assert x is not None
    assert exponent is not None
    if op.dtype(x).is_floating_point():
        return None if x.dtype == exponent.dtype else op.Pow(x, _cast(op, exponent, op.dtype(x)))
    numbers = op.numbers(exponent)
    if numbers is None or numbers.size != 1 or float(numbers.item()) not in range(1, _LARGEST_PRODUCT + 1):
        op.refuse(f"an integer to a power other than a constant 1..{_LARGEST_PRODUCT}")
    return functools.reduce(op.Mul, [x] * int(numbers.item()))


@lowering("Constant", below=12)
def constant_of_numbers(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes value_int, value_floats and the like as a tensor."""
    if "value" in node.attributes or "sparse_value" in node.attributes:
        return None
    tensor = ir.convenience.get_const_tensor(node.outputs[0])
    return op.Constant(value=tensor)


def _cast(op: Builder, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    numbers = op.numbers(value)
    return op.Cast(value, to=int(dtype)) if numbers is None else op.constant(numbers, dtype)


def _maximum(op: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return op.Where(op.Greater(a, b), a, b)


def _minimum(op: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    return op.Where(op.Less(a, b), a, b)
