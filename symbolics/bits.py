"""Bitwise operators and shifts of integers.

Where ONNX has no operator for integers, AND is computed in arithmetic, and OR, XOR and NOT follow from it.

Math:   bit k of a number is set where its remainder modulo 2^(k + 1) is at least 2^k, also in two's complement; the
        sign bit of int64 is set where it is negative. x | y = x + y - (x & y) and x ^ y = x + y - 2 (x & y).
Source: https://en.wikipedia.org/wiki/Bitwise_operation#Mathematical_equivalents
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decomposition, symbolic
from torch_onnx_compat.ops import ONNX_TYPES
from torch_onnx_compat.tracing import as_tensor, constant

Operand = Tensor | int

IN_ARITHMETIC = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
OF_SHIFTS = Declaration(needed_on=("dynamo",), exactness=Exactness.BITWISE)


# Operators of two integers


@decomposition(
    (torch.bitwise_and, Tensor.__and__, Tensor.__rand__),
    needed_on=("torchscript",),
    opset=(11, 17),
    exactness=Exactness.BITWISE,
)
def bitwise_and_to_bits(input: Operand, other: Operand) -> Tensor:
    """Bitwise AND; stock TorchScript takes booleans only below opset 18."""
    if _are_booleans(input, other):
        return _apply_to_number(torch.logical_and, input, other)
    return bitwise_and(*_integers(input, other))


@decomposition((torch.bitwise_or, Tensor.__or__, Tensor.__ror__), **IN_ARITHMETIC)
def bitwise_or_to_bits(input: Operand, other: Operand) -> Tensor:
    """Bitwise OR; stock TorchScript takes booleans only."""
    if _are_booleans(input, other):
        return _apply_to_number(torch.logical_or, input, other)
    x, y = _integers(input, other)
    return x + y - bitwise_and(x, y)


@decomposition((torch.bitwise_xor, Tensor.__xor__, Tensor.__rxor__), **IN_ARITHMETIC)
def bitwise_xor_to_bits(input: Operand, other: Operand) -> Tensor:
    """Bitwise XOR; stock TorchScript takes booleans only."""
    if _are_booleans(input, other):
        return torch.logical_xor(as_tensor(input), as_tensor(other))
    x, y = _integers(input, other)
    return x + y - 2 * bitwise_and(x, y)


def _are_booleans(input: Operand, other: Operand) -> bool:
    return torch.result_type(input, other) == torch.bool


def _apply_to_number(function: Callable[[Tensor, Tensor], Tensor], input: Operand, other: Operand) -> Tensor:
    """A function of a tensor and a number; NotImplemented of two tensors, which stock torch takes."""
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        return NotImplemented
    return function(as_tensor(input), as_tensor(other))


def _integers(input: Operand, other: Operand) -> list[Tensor]:
    """Both operands as tensors of the dtype that they are promoted to."""
    dtype = torch.result_type(input, other)
    like = input if isinstance(input, Tensor) else other
    assert isinstance(like, Tensor)
    return [v.to(dtype) if isinstance(v, Tensor) else constant(v, like, dtype) for v in (input, other)]


def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """AND of two tensors of one integer dtype."""
    width = torch.iinfo(x.dtype).bits
    count = 62 if width == 64 else width
    both = (_low_bits(x, count) & _low_bits(y, count)).to(torch.int64)
    # Halves, because onnxruntime's sum of int64 is not exact beyond 2^53.
    total = _sum_of_bits(both.narrow(-1, 0, min(count, 31)), x)
    if count > 31:
        total = total + _sum_of_bits(both.narrow(-1, 31, count - 31), x) * 2**31
    if width == 64:
        # 2^63 and beyond have no positive int64: the two highest bits follow from comparisons.
        for bit, weight in ((_bit_62, 2**62), (_bit_63, -(2**63))):
            total = total + (bit(x) & bit(y)).to(torch.int64) * constant(weight, x, torch.int64)
    return total.to(x.dtype)


def _low_bits(x: Tensor, count: int) -> Tensor:
    """Whether each of the lowest bits is set, along a new last axis."""
    powers = np.array([2**k for k in range(count)], dtype=np.int64)
    rest = torch.remainder(x.to(torch.int64).unsqueeze(-1), constant(2 * powers, x, torch.int64))
    return rest >= constant(powers, x, torch.int64)


def _sum_of_bits(bits: Tensor, like: Tensor) -> Tensor:
    weights = np.array([2**k for k in range(bits.shape[-1])], dtype=np.int64)
    return (bits * constant(weights, like, torch.int64)).sum(-1)


def _bit_62(x: Tensor) -> Tensor:
    low, high = (constant(limit, x, torch.int64) for limit in (-(2**62), 2**62))
    return ((x < 0) & (x >= low)) | (x >= high)


def _bit_63(x: Tensor) -> Tensor:
    return x < 0


# NOT


@decomposition((torch.bitwise_not, Tensor.__invert__), **IN_ARITHMETIC)
def bitwise_not_to_sub(input: Tensor) -> Tensor:
    """Bitwise NOT; stock TorchScript takes booleans only.

    Math: in two's complement ~x = -1 - x; of an unsigned number it is the largest number less x.
    """
    if input.dtype == torch.bool:
        return NotImplemented
    return (255 if input.dtype == torch.uint8 else -1) - input


# Shifts of signed integers, by tensors of counts. A count that is negative, or as large as the number is wide, leaves
# nothing of a number that is shifted to the left, and its sign of one that is shifted to the right.


POWERS = [1 << bits for bits in range(63)]


@decomposition((torch.bitwise_left_shift, Tensor.__lshift__), **IN_ARITHMETIC)
def left_shift_by_counts(input: Operand, other: Operand) -> Tensor:
    """Shifts signed integers to the left; stock TorchScript takes powers in floating point, whatever the count.

    Math: the product with 2^n modulo 2^64, which is -2^63 for n = 63 and 0 beyond the width.
    """
    dtype = torch.result_type(input, other)
    is_plain = not isinstance(other, Tensor) and dtype != torch.int16
    if not _is_signed(dtype) or (is_plain and 0 <= other < torch.iinfo(dtype).bits):
        return NotImplemented  # stock is right
    x, power = _shift(input, other, [*POWERS, -(2**63), 0], dtype)
    return (x * power).to(dtype)


@decomposition(
    (torch.bitwise_right_shift, Tensor.__rshift__), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE
)
def right_shift_by_counts(input: Operand, other: Operand) -> Tensor:
    """Shifts signed integers to the right; stock TorchScript divides by a power, which is 0 of some counts.

    In older versions of torch it rounds the quotients of negative numbers up. Stock dynamo chooses between int16, for
    which onnxruntime has no kernel.

    Math: the quotient by 2^n, rounded down: (x + s) / 2^n - s, where division rounds to 0 and s is 1 for negative x;
          0 - s where n is too large.
    """
    dtype = torch.result_type(input, other)
    if not _is_signed(dtype):
        return NotImplemented
    if not isinstance(other, Tensor) and 0 <= other < torch.iinfo(dtype).bits - 1:
        assert isinstance(input, Tensor)
        x = input.to(torch.int64)
        sign = (x < 0).to(torch.int64)
        return (torch.div(x + sign, 2 ** int(other), rounding_mode="trunc") - sign).to(dtype)
    x, power = _shift(input, other, [*POWERS, 0, 0], dtype)
    sign = (x < 0).to(torch.int64)
    one = torch.ones_like(power)
    quotient = torch.div(x + sign, torch.where(power == 0, one, power), rounding_mode="trunc")
    return (torch.where(power == 0, torch.zeros_like(x), quotient) - sign).to(dtype)


def _is_signed(dtype: torch.dtype) -> bool:
    return dtype not in (torch.uint8, torch.bool) and not dtype.is_floating_point


def _shift(input: Operand, other: Operand, powers: list[int], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The number in int64, and the power of two of its count.

    Args:
        input: What is shifted.
        other: By how many bits.
        powers: Of the counts 0 to 63, and of all others.
        dtype: That of the result.
    """
    x, count = (v.to(torch.int64) for v in _integers(input, other))
    known = (count >= 0) & (count < torch.iinfo(dtype).bits)
    table = constant(powers, count)
    return x, table[torch.where(known, count, torch.full_like(count, 64))]


# Shifts of bytes: a shift by eight bits or more leaves nothing of a byte; ONNX's BitShift leaves it undefined


@symbolic("aten::bitwise_left_shift", **OF_SHIFTS)
def bitwise_left_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes to the left, of which stock dynamo makes signed ones.

    Schema: bitwise_left_shift(Tensor self, Tensor other) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html;
            https://onnx.ai/onnx/operators/onnx__BitShift.html
    """
    return _shift_bytes(op, self, other, "LEFT")


@symbolic("aten::bitwise_right_shift", **OF_SHIFTS)
def bitwise_right_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes to the right, of which stock dynamo makes signed ones.

    Schema: bitwise_right_shift(Tensor self, Tensor other) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_right_shift.html;
            https://onnx.ai/onnx/operators/onnx__BitShift.html
    """
    return _shift_bytes(op, self, other, "RIGHT")


def _shift_bytes(op: Ops, x: Value, bits: Value, direction: str) -> Value:
    """A uint8 tensor, shifted by 0..255 bits; NotImplemented where torch promotes the two to another dtype."""
    if op.result_type(x, bits) != torch.uint8:
        return NotImplemented
    number, count = op.number(bits), op.cast(bits, torch.uint8)
    result = op.BitShift(op.cast(x, torch.uint8), count, direction=direction)
    if number is not None and number < 8:
        return result
    is_short = op.Less(op.Cast(count, to=ONNX_TYPES[torch.int32]), op.constant(8, torch.int32))
    return op.Where(is_short, result, op.constant(0, torch.uint8))


# Shift operators, of which stock dynamo knows the function only


@decomposition(Tensor.__lshift__, **OF_SHIFTS)
def lshift_to_bitwise_left_shift(self: Tensor, other: Operand) -> Tensor:
    """Writes x << y as torch.bitwise_left_shift(x, y).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
    """
    return torch.bitwise_left_shift(self, other)


@decomposition(Tensor.__rshift__, **OF_SHIFTS)
def rshift_to_bitwise_right_shift(self: Tensor, other: Operand) -> Tensor:
    """Writes x >> y as torch.bitwise_right_shift(x, y).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_right_shift.html
    """
    return torch.bitwise_right_shift(self, other)
