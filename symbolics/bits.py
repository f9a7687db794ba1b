"""Bitwise operators and shifts of integers.

Bitwise AND of integers in arithmetic, for opsets that have no operator for it.

Math:   bit k of a number is set where its remainder modulo 2^(k + 1) is at least 2^k, also in two's complement; the
        sign bit of int64 is whether it is negative. x | y = x + y - (x & y) and x ^ y = x + y - 2 (x & y).
Source: https://en.wikipedia.org/wiki/Bitwise_operation#Mathematical_equivalents

Shifts of bytes as ONNX operators.

Math:   a shift by eight bits or more leaves nothing of a byte; BitShift leaves it undefined.
Source: https://onnx.ai/onnx/operators/onnx__BitShift.html
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decomposition, symbolic
from torch_onnx_compat.ops import ONNX_TYPES
from torch_onnx_compat.tracing import constant


def integers(*values: Any) -> tuple[torch.dtype, list[Tensor]] | None:
    """Operands as tensors and the dtype they are promoted to; None where that is bool."""
    tensors = [v if isinstance(v, Tensor) else None for v in values]
    dtype = torch.result_type(values[0], values[1])
    if dtype == torch.bool:
        return None
    like = next(t for t in tensors if t is not None)
    return dtype, [constant(v, like, dtype) if t is None else t.to(dtype) for v, t in zip(values, tensors, strict=True)]


def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """AND of two tensors of one integer dtype."""
    dtype = x.dtype
    width = torch.iinfo(dtype).bits
    count = 62 if width == 64 else width
    powers = [2**k for k in range(count)]
    is_set = [_bits(v.to(torch.int64), powers) for v in (x, y)]
    both = (is_set[0] & is_set[1]).to(torch.int64)
    # Halves, because onnxruntime's sum of int64 is not exact beyond 2^53.
    total = _number(both.narrow(-1, 0, min(count, 31)), x)
    if count > 31:
        total = total + _number(both.narrow(-1, 31, count - 31), x) * 2**31
    if width == 64:
        # 2^63 and beyond have no positive int64: the two highest bits follow from the sign and from halves.
        for v_bit, weight in ((_bit62, 2**62), (_sign, -(2**63))):
            total = total + (v_bit(x) & v_bit(y)).to(torch.int64) * constant(weight, x, torch.int64)
    return total.to(dtype)


def _number(bits: Tensor, like: Tensor) -> Tensor:
    weights = np.array([2**k for k in range(bits.shape[-1])], dtype=np.int64)
    return (bits * constant(weights, like, torch.int64)).sum(-1)


def _bits(x: Tensor, powers: list[int]) -> Tensor:
    modulus = np.array([2 * p for p in powers], dtype=np.int64)
    rest = torch.remainder(x.unsqueeze(-1), constant(modulus, x, torch.int64))
    return rest >= constant(np.array(powers, dtype=np.int64), x, torch.int64)


def _bit62(x: Tensor) -> Tensor:
    low, high = (constant(limit, x, torch.int64) for limit in (-(2**62), 2**62))
    return ((x < 0) & (x >= low)) | (x >= high)


def _sign(x: Tensor) -> Tensor:
    return x < 0


def shifted(op: Ops, x: Value, bits: Value, direction: str) -> Value:
    """A uint8 tensor shifted.

    Args:
        op: Writes the nodes.
        x: What is shifted.
        bits: By how many, 0..255, or a number.
        direction: ``"LEFT"`` or ``"RIGHT"``.

    Returns:
        The result, or NotImplemented where torch's promotion makes no uint8 of the two.
    """
    if op.result_type(x, bits) != torch.uint8:
        return NotImplemented
    number, count = op.number(bits), op.cast(bits, torch.uint8)
    result = op.BitShift(op.cast(x, torch.uint8), count, direction=direction)
    if number is not None and number < 8:
        return result
    is_short = op.Less(op.Cast(count, to=ONNX_TYPES[torch.int32]), op.constant(8, torch.int32))
    return op.Where(is_short, result, op.constant(0, torch.uint8))


@decomposition(
    (torch.bitwise_and, Tensor.__and__, Tensor.__rand__),
    needed_on=("torchscript",),
    opset=(11, 17),
    exactness=Exactness.BITWISE,
)
def bitwise_and_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise AND; stock TorchScript takes booleans only below opset 18.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
    """
    operands = integers(input, other)
    if operands is None:
        if isinstance(input, Tensor) and isinstance(other, Tensor):
            return NotImplemented
        return torch.logical_and(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return bitwise_and(x, y)


@decomposition(
    (torch.bitwise_or, Tensor.__or__, Tensor.__ror__), needed_on=("torchscript",), exactness=Exactness.BITWISE
)
def bitwise_or_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise OR; stock TorchScript takes booleans only.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
    """
    operands = integers(input, other)
    if operands is None:
        if isinstance(input, Tensor) and isinstance(other, Tensor):
            return NotImplemented
        return torch.logical_or(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return x + y - bitwise_and(x, y)


@decomposition(
    (torch.bitwise_xor, Tensor.__xor__, Tensor.__rxor__), needed_on=("torchscript",), exactness=Exactness.BITWISE
)
def bitwise_xor_to_bits(input: Tensor | int, other: Tensor | int) -> Tensor:
    """Bitwise XOR; stock TorchScript takes booleans only.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_and.html
    """
    operands = integers(input, other)
    if operands is None:
        return torch.logical_xor(*(torch.as_tensor(value) for value in (input, other)))
    _, (x, y) = operands
    return x + y - 2 * bitwise_and(x, y)


@decomposition((torch.bitwise_not, Tensor.__invert__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def bitwise_not_to_sub(input: Tensor) -> Tensor:
    """Bitwise NOT; stock TorchScript takes booleans only.

    Math: in two's complement ~x = -1 - x; without a sign, the largest number less x.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_not.html
    """
    if input.dtype == torch.bool:
        return NotImplemented
    return (255 if input.dtype == torch.uint8 else -1) - input


@symbolic("aten::bitwise_left_shift", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def bitwise_left_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes, of which stock dynamo makes signed ones.

    Schema: bitwise_left_shift(Tensor self, Tensor other) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
    """
    return shifted(op, self, other, "LEFT")


@symbolic("aten::bitwise_right_shift", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def bitwise_right_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes, of which stock dynamo makes signed ones.

    Schema: bitwise_right_shift(Tensor self, Tensor other) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_right_shift.html
    """
    return shifted(op, self, other, "RIGHT")


@decomposition(Tensor.__lshift__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def lshift_to_bitwise_left_shift(self: Tensor, other: Tensor | int) -> Tensor:
    """Shifts; stock dynamo knows the function, not the operator.

    Math: the same by another name.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
    """
    return torch.bitwise_left_shift(self, other)


@decomposition(Tensor.__rshift__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def rshift_to_bitwise_right_shift(self: Tensor, other: Tensor | int) -> Tensor:
    """Shifts; stock dynamo knows the function, not the operator.

    Math: the same by another name.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_right_shift.html
    """
    return torch.bitwise_right_shift(self, other)
