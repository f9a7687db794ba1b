"""torch.sinc -> Sin over its argument, 1 at 0.

Math:   sin(pi x) / (pi x).
Source: https://docs.pytorch.org/docs/stable/generated/torch.sinc.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.sinc, torch.special.sinc), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def sinc_to_sin(input: Tensor) -> Tensor:
    """Normalized sinc; stock TorchScript has no symbolic for it."""
    angle = input * math.pi
    is_zero = angle == 0
    return torch.where(
        is_zero, torch.ones_like(angle), torch.sin(angle) / torch.where(is_zero, torch.ones_like(angle), angle)
    )
