"""aten::cosh -> Cosh.

Math:   by definition; integers become torch's default floating-point type first.
Schema: cosh(Tensor self) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__Cosh.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::cosh", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def cosh(op: Ops, self: Value) -> Value:
    """Hyperbolic cosine; stock TorchScript has no symbolic for it."""
    dtype = op.dtype(self)
    return op.Cosh(self if dtype.is_floating_point else op.cast(self, torch.get_default_dtype()))
