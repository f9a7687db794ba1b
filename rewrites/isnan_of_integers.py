"""torch.isnan, isinf of integers -> false.

Math:   every integer is finite.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isnan.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.isnan, torch.isinf), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isnan_of_integers(input: Tensor) -> Tensor:
    """Whether integers are NaN or infinite; ONNX's operators take floats only."""
    if input.is_floating_point():
        return NotImplemented  # type: ignore[no-any-return]
    return torch.zeros_like(input, dtype=torch.bool)
