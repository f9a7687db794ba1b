"""aten::asinh -> Asinh.

Math:   by definition; integers become torch's default floating-point type first.
Schema: asinh(Tensor self) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Asinh.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::asinh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def asinh(op: Ops, self: Value) -> Value:
    """Inverse hyperbolic sine; stock TorchScript has no symbolic for it."""
    dtype = op.dtype(self)
    return op.Asinh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))
