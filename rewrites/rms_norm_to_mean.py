"""torch.rms_norm, F.rms_norm, nn.RMSNorm -> a mean of squares and a division.

Math:   x / sqrt(mean(x^2) + eps) * weight over the last axes; 16-bit numbers are computed with in float32.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.rms_norm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def rms_norm_to_mean(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Root-mean-square normalisation; stock TorchScript has no symbolic for it."""
    is_half = input.dtype in (torch.float16, torch.bfloat16)
    x = input.float() if is_half else input
    axes = tuple(range(-len(normalized_shape), 0))
    mean = (x * x).mean(axes, keepdim=True)
    output = x / torch.sqrt(mean + (torch.finfo(x.dtype).eps if eps is None else eps))
    if weight is not None:
        output = output * (weight.float() if is_half else weight)
    return output.to(input.dtype) if is_half else output
