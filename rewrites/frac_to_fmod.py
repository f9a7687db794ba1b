"""torch.frac -> the remainder of a division by 1.

Math:   C's fmod(x, 1) has the sign of x and is exact.
Source: https://docs.pytorch.org/docs/stable/generated/torch.frac.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.frac, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def frac_to_fmod(input: Tensor) -> Tensor:
    """Fractional part; stock TorchScript has no symbolic for it."""
    return torch.fmod(input, 1)
