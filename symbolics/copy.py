"""aten::copy -> Cast, Expand.

Schema: copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor
Semantics: the values of src in the type of self, broadcast to its shape. Both exporters make it of a copy_ into an
        input; TorchScript has no form of it, and dynamo forgets to broadcast.
Source: https://onnx.ai/onnx/operators/onnx__Expand.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::copy", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copy(op: Ops, self: Value, src: Value, non_blocking: bool = False) -> Value:
    """What a tensor holds after another was written into it."""
    return op.Expand(op.cast(src, op.dtype(self)), op.Shape(self))
