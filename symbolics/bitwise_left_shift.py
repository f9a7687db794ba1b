"""aten::bitwise_left_shift of bytes -> BitShift.

Math:   torch_onnx_compat.functional.byte_shifts.
Schema: bitwise_left_shift(Tensor self, Tensor other) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.byte_shifts import shifted


@symbolic("aten::bitwise_left_shift", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def bitwise_left_shift(op: Ops, self: Value, other: Value) -> Value:
    """Shifts bytes, of which stock dynamo makes signed ones."""
    return shifted(op, self, other, "LEFT")
