"""Shifts of bytes as ONNX operators.

Math:   a shift by eight bits or more leaves nothing of a byte; BitShift leaves it undefined.
Source: https://onnx.ai/onnx/operators/onnx__BitShift.html
"""

from __future__ import annotations

import torch

from torch_onnx_compat.ops import ONNX_TYPES, Ops, Value


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
