"""torch.cumsum of floating-point numbers -> added up in float64, rounded once.

Math:   torch keeps the running sum in double precision and rounds what it writes; onnxruntime rounds the running sum
        itself. After 24,000 steps of a phase of 0.05 radians, one second of a vocoder, it is 0.0035 radians off.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cumsum.html; cumsum_cpu_kernel of ATen's
        native/cpu/ReduceOpsKernel.cpp
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size

FEW = 8
"""Elements whose sum is off by no more than roundings."""


@rewrite(torch.cumsum, needed_on=("torchscript", "dynamo"), targets=("onnxruntime",), exactness=Exactness.ROUNDING)
def cumsum_in_double(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum of more than a few numbers; integers and float64 are left to torch."""
    wanted = dtype or input.dtype
    if not wanted.is_floating_point or wanted is torch.float64 or input.dim() == 0 or out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    size = static_size(input, dim)
    if size is not None and size <= FEW:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.cumsum(input.to(wanted).to(torch.float64), dim).to(wanted)
