"""aten::floor_divide, the // of tensors -> Div, and a step down where that rounded up.

Math:   integers: q = a / b is truncated, so one too much where a - q * b and b differ in sign.
        Floats, as torch does: q = (a - fmod(a, b)) / b, one less where fmod and b differ in sign, to the nearest
        integer, halves down. floor(a / b) is one too much where a / b rounds up to an integer: 7 // 0.1 is 69.
Schema: floor_divide(Tensor self, Tensor other) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.floor_divide.html; c10/util/generic_math.h
"""

import math

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.ops import ONNX_TYPES


@symbolic(
    "aten::floor_divide",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
    issue="https://github.com/pytorch/pytorch/issues/48739",
)
def floor_divide(op: Ops, self: Value, other: Value) -> Value:
    """Quotient rounded down; stock TorchScript truncates it, stock dynamo rounds the quotient before the floor.

    Sizes are never negative: they keep the single Div. Infinite and subnormal floats are not exact when divided by a
    power of two, nor are float16 quotients beyond 2048.
    """
    dtype = op.result_type(self, other)
    number = op.number(other)
    if not dtype.is_floating_point:
        return _integers(op, self, other, dtype)
    dividend, divisor = op.cast(self, dtype), op.cast(other, dtype)
    if number is not None and math.frexp(abs(number))[0] in (0.0, 0.5):  # by zero or a power of two: nothing to round
        quotient = op.Div(dividend, divisor)
        return op.Floor(quotient) if number else quotient
    return _floats(op, dividend, divisor, dtype, number)


def _integers(op: Ops, self: Value, other: Value, dtype: torch.dtype) -> Value:
    wide = torch.promote_types(dtype, torch.int32)  # Div takes narrower integers from opset 14 only
    dividend, divisor = op.cast(self, wide), op.cast(other, wide)
    quotient = op.Div(dividend, divisor)
    if not (_is_non_negative(op, self) and _is_non_negative(op, other)):
        product = op.Mul(quotient, divisor)
        number = op.number(other)
        if number is None:
            too_high = op.Less(op.Mul(op.Sub(dividend, product), op.Sign(divisor)), op.constant(0, wide))
        else:
            too_high = op.Greater(product, dividend) if number > 0 else op.Less(product, dividend)
        quotient = op.Sub(quotient, op.Where(too_high, op.constant(1, wide), op.constant(0, wide)))
    return quotient if wide == dtype else op.Cast(quotient, to=ONNX_TYPES[dtype])


def _is_non_negative(op: Ops, value: Value) -> bool:
    number = op.number(value)
    if number is not None:
        return number >= 0
    return op.dtype(value) in (torch.uint8, torch.bool) or op.is_size(value)


def _floats(op: Ops, dividend: Value, divisor: Value, dtype: torch.dtype, number: float | None) -> Value:
    zero, one = op.constant(0, dtype), op.constant(1, dtype)
    rest = op.Mod(dividend, divisor, fmod=1)
    if number is None:
        too_high = op.Less(op.Mul(rest, op.Sign(divisor)), zero)
    else:
        too_high = op.Less(rest, zero) if number > 0 else op.Greater(rest, zero)
    quotient = op.Sub(op.Div(op.Sub(dividend, rest), divisor), op.Where(too_high, one, zero))
    below = op.Floor(quotient)
    too_low = op.Greater(op.Sub(quotient, below), op.constant(0.5, dtype))
    rounded = op.Add(below, op.Where(too_low, one, zero))
    if number is not None:
        return rounded
    return op.Where(op.Equal(divisor, zero), op.Div(dividend, divisor), rounded)
