"""aten::sinh -> Sinh.

Math:   by definition; integers become torch's default floating-point type first.
Schema: sinh(Tensor self) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Sinh.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::sinh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def sinh(op: Ops, self: Value) -> Value:
    """Hyperbolic sine; stock TorchScript has no symbolic for it."""
    dtype = op.dtype(self)
    return op.Sinh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))
