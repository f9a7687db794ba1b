"""torch.cumprod -> the products of the beginnings of an axis.

Math:   torch_onnx_compat.functional.running.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cumprod.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.running import running
from torch_onnx_compat.tracing import static_size


@rewrite(torch.cumprod, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cumprod_to_prod(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running product; neither exporter has an operator for it.

    Declines: out=, and float64 along an axis of varying size, since onnxruntime has no product of doubles.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    if dtype is None:
        dtype = input.dtype if input.is_floating_point() else torch.int64
    x = input.to(dtype)
    if x.dim() == 0:
        return x.clone()
    size = static_size(input, dim)
    if size is None and dtype == torch.float64:
        decline(f"float64 needs a fixed size of axis {dim}; fix it or convert to float32")
    return running(x, dim, size, neutral=1, reduce=lambda y: y.prod(-1, dtype=dtype), combine=torch.mul)
