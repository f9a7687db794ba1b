"""torch.rad2deg -> Mul.

Math:   x * 180 / pi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.rad2deg.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.rad2deg, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def rad2deg_to_mul(input: Tensor) -> Tensor:
    """Radians to degrees; stock TorchScript has no symbolic for it."""
    return input * (180 / math.pi)
