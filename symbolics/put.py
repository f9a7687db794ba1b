"""aten::put -> ScatterElements on the flattened tensor.

Schema: put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.put_.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::put", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def put(op: Ops, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """Writes or adds at places of the flattened tensor; stock TorchScript refuses, stock dynamo adds in a race."""
    flat, places, values = (op.Reshape(value, [-1]) for value in (self, op.cast(index, torch.int64), source))
    written = op.ScatterElements(flat, places, values, axis=0, reduction="add" if accumulate else None)
    return op.Reshape(written, op.Shape(self))
