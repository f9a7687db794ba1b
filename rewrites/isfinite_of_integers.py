"""torch.isfinite of integers -> true.

Math:   every integer is finite.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.isfinite, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isfinite_of_integers(input: Tensor) -> Tensor:
    """Whether integers are finite; ONNX's operators take floats only."""
    if input.is_floating_point():
        return NotImplemented  # type: ignore[no-any-return]
    return torch.ones_like(input, dtype=torch.bool)
