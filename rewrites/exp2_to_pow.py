"""torch.exp2 -> Pow of 2.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.exp2.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.exp2, torch.special.exp2), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def exp2_to_pow(input: Tensor) -> Tensor:
    """Powers of 2; stock TorchScript has no symbolic for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return torch.pow(2.0, x)
