"""aten::bitwise_left_shift of bytes -> BitShift.

Math:   a shift by eight bits or more leaves nothing of a byte; BitShift leaves it undefined.
Schema: bitwise_left_shift(Tensor self, Tensor other) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__BitShift.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::bitwise_left_shift", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def bitwise_left_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes, of which stock dynamo makes signed ones."""
    if op.result_type(self, other) != torch.uint8:
        return NotImplemented
    bits, number = op.cast(other, torch.uint8), op.number(other)
    shifted = op.BitShift(op.cast(self, torch.uint8), bits, direction="LEFT")
    if number is not None and number < 8:
        return shifted
    return op.Where(op.Less(op.Cast(bits, to=6), op.constant(8, torch.int32)), shifted, op.constant(0, torch.uint8))
