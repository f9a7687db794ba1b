"""torch.expm1 -> Exp - 1, or Tanh near 0.

Math:   exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), which loses nothing near 0;
        beyond 1/2 nothing is lost anyway.
Source: https://docs.pytorch.org/docs/stable/generated/torch.expm1.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.expm1, torch.special.expm1), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def expm1_to_tanh(input: Tensor) -> Tensor:
    """Exponential less 1, precise near 0; stock TorchScript refuses it, stock dynamo rounds exp(x)."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    half = torch.tanh(x * 0.5)
    is_near = torch.abs(x) < 0.5
    return torch.where(is_near, 2 * half / (1 - half), torch.exp(x) - 1)
