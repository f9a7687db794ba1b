"""aten::atanh -> Atanh.

Math:   by definition; integers become torch's default floating-point type first.
Schema: atanh(Tensor self) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Atanh.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::atanh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def atanh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic tangent; stock TorchScript has no symbolic for it."""
    dtype = op.dtype(self)
    return op.Atanh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))
