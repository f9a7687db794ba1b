"""Remainders, floor division, and rounding to integers.

Math:   a = q b + r. The quotient q is rounded towards zero for fmod, whose r has the sign of a, and down for remainder,
        whose r has the sign of b. Where the r of fmod and b differ in sign, the floor is q - 1 and the remainder r + b.
        For floats fmod is exact and floor(a / b) is not: a / b may be rounded up to an integer.
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.ops import ONNX_TYPES
from torch_onnx_compat.tracing import as_tensor, is_tracing

ON_TORCHSCRIPT = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
ON_BOTH = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
WITHOUT_MOD = Declaration(avoids=("Mod",), exactness=Exactness.ROUNDING)


def differ_in_sign(op: Ops, rest: Value, divisor: Value, dtype: torch.dtype, number: float | None = None) -> Value:
    """Where a remainder is not 0 and has not the sign of the divisor.

    Args:
        op: Of the body that asks.
        rest: The remainder.
        divisor: Of the same type.
        dtype: That type.
        number: The divisor if it is a number, which spares a product.
    """
    zero = op.constant(0, dtype)
    if number is None:
        return op.Less(op.Mul(rest, op.Sign(divisor)), zero)
    return op.Less(rest, zero) if number > 0 else op.Greater(rest, zero)


def round_to_zero(x: Tensor) -> Tensor:
    """The integer part of floats, without trunc, which stock TorchScript lacks."""
    return torch.where(x < 0, torch.ceil(x), torch.floor(x))


# Remainders


@symbolic("aten::remainder", **ON_BOTH)
def remainder(op: Ops, self: Value, other: Value) -> Value:
    """Remainder with the divisor's sign; stock computes that of floats as a - b * floor(a / b), off by up to b.

    Math: integers: Mod itself, whose result has the divisor's sign. Floats: C's fmod, plus the divisor where the signs
          differ. a - b * floor(a / b) makes 0 of 1e10 % 3 in float32.
    Schema: remainder.Tensor(Tensor self, Tensor other); remainder.Scalar(Tensor self, Scalar other);
            remainder.Scalar_Tensor(Scalar self, Tensor other)
    Source: https://docs.pytorch.org/docs/stable/generated/torch.remainder.html; ATen/native/cpu/BinaryOpsKernel.cpp
    """
    dtype, (dividend, divisor) = op.promoted(self, other)
    if not dtype.is_floating_point:
        return op.Mod(dividend, divisor)
    rest = op.Mod(dividend, divisor, fmod=1)
    return op.Where(differ_in_sign(op, rest, divisor, dtype, op.number(other)), op.Add(rest, divisor), rest)


@decomposition(torch.remainder, **WITHOUT_MOD)
def remainder_to_floor(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Remainder with the divisor's sign, by Div and Floor; not for a number before the % of a tensor.

    Math: a - b * floor(a / b). Floats: off by a few units in the last place of a, and by b where a / b rounds to an
          integer that it is not. Integers: exact.
    """
    if torch.result_type(input, other).is_floating_point:
        quotient = torch.floor(torch.div(input, other))
    else:
        quotient = torch.floor_divide(input, other)
    return input - quotient * other


@decomposition(torch.fmod, **WITHOUT_MOD)
def fmod_to_trunc(input: Tensor, other: Tensor | float) -> Tensor:
    """Remainder with the dividend's sign, by Div, Floor and Ceil.

    Math: a - b * trunc(a / b). Floats: off by a few units in the last place of a, and by b where a / b rounds to an
          integer that it is not. Integers: exact, as a - b * floor(a / b), less b where that has not the sign of a.
    """
    if torch.result_type(input, other).is_floating_point:
        return input - round_to_zero(torch.div(input, other)) * other
    rest = input - torch.floor_divide(input, other) * other
    return torch.where(rest * torch.sign(input) < 0, rest - other, rest)


@decomposition(torch.frac, **ON_TORCHSCRIPT)
def frac_to_fmod(input: Tensor) -> Tensor:
    """Fractional part; stock TorchScript has no symbolic for it.

    Math: C's fmod(x, 1) has the sign of x and is exact.
    """
    return torch.fmod(input, 1)


# Quotients


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

    Math: integers: q = a / b is truncated, so one too much where a - q * b and b differ in sign. Floats, as torch does:
          q = (a - fmod(a, b)) / b, one less where fmod and b differ in sign, to the nearest integer, halves down.
          floor(a / b) makes 70 of 7 // 0.1, which is 69.
    Schema: floor_divide(Tensor self, Tensor other) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.floor_divide.html; c10/util/generic_math.h
    """
    dtype = op.result_type(self, other)
    if not dtype.is_floating_point:
        return _divide_integers(op, self, other, dtype)
    number = op.number(other)
    dividend, divisor = op.cast(self, dtype), op.cast(other, dtype)
    if number is not None and math.frexp(abs(number))[0] in (0.0, 0.5):  # by zero or a power of two: nothing to round
        quotient = op.Div(dividend, divisor)
        return op.Floor(quotient) if number else quotient
    return _divide_floats(op, dividend, divisor, dtype, number)


def _divide_integers(op: Ops, self: Value, other: Value, dtype: torch.dtype) -> Value:
    wide = torch.promote_types(dtype, torch.int32)  # Div takes narrower integers from opset 14 only
    dividend, divisor = op.cast(self, wide), op.cast(other, wide)
    quotient = op.Div(dividend, divisor)
    if not (_is_non_negative(op, self) and _is_non_negative(op, other)):
        product = op.Mul(quotient, divisor)
        number = op.number(other)
        if number is None:
            too_high = differ_in_sign(op, op.Sub(dividend, product), divisor, wide)
        else:
            too_high = op.Greater(product, dividend) if number > 0 else op.Less(product, dividend)
        quotient = op.Sub(quotient, op.Where(too_high, op.constant(1, wide), op.constant(0, wide)))
    return quotient if wide == dtype else op.Cast(quotient, to=ONNX_TYPES[dtype])


def _is_non_negative(op: Ops, value: Value) -> bool:
    number = op.number(value)
    if number is not None:
        return number >= 0
    return op.dtype(value) in (torch.uint8, torch.bool) or op.is_size(value)


def _divide_floats(op: Ops, dividend: Value, divisor: Value, dtype: torch.dtype, number: float | None) -> Value:
    zero, one = op.constant(0, dtype), op.constant(1, dtype)
    rest = op.Mod(dividend, divisor, fmod=1)
    too_high = differ_in_sign(op, rest, divisor, dtype, number)
    quotient = op.Sub(op.Div(op.Sub(dividend, rest), divisor), op.Where(too_high, one, zero))
    below = op.Floor(quotient)
    too_low = op.Greater(op.Sub(quotient, below), op.constant(0.5, dtype))
    rounded = op.Add(below, op.Where(too_low, one, zero))
    if number is not None:
        return rounded
    return op.Where(op.Equal(divisor, zero), op.Div(dividend, divisor), rounded)


@symbolic("_operator::floordiv", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def floordiv(op: Ops, a: Value, b: Value) -> Value:
    """Quotient of two int64, rounded down; where neither is negative the single Div stays.

    Math: q = a / b is truncated, so one too much where a - q * b and b differ in sign. By q alone, -(-n // 4), which is
          n / 4 rounded up, is n // 4.
    Schema: floordiv(int a, int b) -> int
    Source: https://onnx.ai/onnx/operators/onnx__Div.html
    """
    if op.is_size(a) and op.is_size(b):
        return NotImplemented
    dividend, divisor = op.cast(a, torch.int64), op.cast(b, torch.int64)
    quotient = op.Div(dividend, divisor)
    rest = op.Sub(dividend, op.Mul(quotient, divisor))
    too_high = differ_in_sign(op, rest, divisor, torch.int64)
    return op.Sub(quotient, op.Cast(too_high, to=ONNX_TYPES[torch.int64]))


@decomposition((torch.floor_divide, Tensor.__floordiv__), **WITHOUT_MOD)
def floor_divide_to_floor(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded down, by Div and Floor; not for a number before the // of a tensor.

    Declines: integers, which the symbolic floor_divide divides without Mod.

    Math: floor(a / b): one too much where a / b rounds up to an integer, and infinite for an infinite dividend, of
          which torch makes NaN.
    """
    if not torch.result_type(input, other).is_floating_point:
        decline("integers are divided without Mod anyway")
    return torch.floor(torch.div(input, other))


@decomposition((torch.div, torch.divide), **ON_BOTH)
def div_rounding_mode(input: Tensor | float, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Rounded quotient; stock dynamo divides integers in float32, stock TorchScript casts floats to int64.

    Math: floor: floor_divide. trunc of integers: a - fmod(a, b) is a multiple of b, so nothing is rounded down. trunc
          of floats: floor or ceil of the quotient, by its sign.
    """
    if rounding_mode is None:  # both exporters write plain division right
        return NotImplemented
    if rounding_mode == "floor":
        return torch.floor_divide(input, other)
    dtype = torch.result_type(input, other)
    if dtype.is_floating_point:
        return round_to_zero(torch.div(input, other))
    wide = torch.promote_types(dtype, torch.int32)  # Sub takes narrower integers from opset 14 only
    dividend, divisor = (as_tensor(value).to(wide) for value in (input, other))
    if is_tracing():  # stock TorchScript's Div truncates, as that of ONNX does
        return torch.div(dividend, divisor, rounding_mode="trunc").to(dtype)
    return torch.floor_divide(dividend - torch.fmod(dividend, divisor), divisor).to(dtype)


# Rounding


@decomposition((torch.floor, torch.ceil, torch.round, torch.trunc, torch.fix), **ON_BOTH)
def rounding_of_integers(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds integers, which ONNX's rounding operators do not take.

    Math: an integer is its own integer part.
    """
    if input.is_floating_point() or decimals:
        return NotImplemented
    return input.clone()


@decomposition((torch.trunc, torch.fix), **ON_TORCHSCRIPT)
def trunc_to_floor(input: Tensor) -> Tensor:
    """Rounds toward zero; stock TorchScript has no symbolic for it.

    Math: floor of what is positive, ceil of what is negative; the integer part of an integer is itself.
    """
    return round_to_zero(input) if input.is_floating_point() else input.clone()
