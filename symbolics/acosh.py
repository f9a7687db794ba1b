"""aten::acosh -> Acosh.

Math:   by definition; integers become torch's default floating-point type first.
Schema: acosh(Tensor self) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Acosh.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::acosh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def acosh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic cosine; stock TorchScript has no symbolic for it."""
    dtype = op.dtype(self)
    return op.Acosh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))
