"""torch.deg2rad -> Mul.

Math:   x * pi / 180.
Source: https://docs.pytorch.org/docs/stable/generated/torch.deg2rad.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.deg2rad, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def deg2rad_to_mul(input: Tensor) -> Tensor:
    """Degrees to radians; stock TorchScript has no symbolic for it."""
    return input * (math.pi / 180)
