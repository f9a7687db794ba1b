"""torch_onnx_compat::take -> Gather.

Schema: take(Tensor x, Tensor table, int axis) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Gather.html; torch_onnx_compat.functional.take
"""

import torch_onnx_compat.functional.take  # noqa: F401  (defines the operator)
from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("torch_onnx_compat::take", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def take(op: Ops, x: Value, table: Value, axis: int) -> Value:
    """Reads the cells of an axis that a table of any rank names."""
    return op.Gather(x, table, axis=axis)
