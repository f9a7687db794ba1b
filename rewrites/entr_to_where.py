"""torch.special.entr -> -x log(x), 0 at 0, -inf below.

Math:   by definition; NaN where x is.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.entr
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.special.entr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def entr_to_where(input: Tensor) -> Tensor:
    """Entropy of each value; stock TorchScript has no symbolic for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    inner = torch.where(x == 0, torch.zeros_like(x), -x * torch.log(x))
    return torch.where(x < 0, torch.full_like(x, -math.inf), inner)
