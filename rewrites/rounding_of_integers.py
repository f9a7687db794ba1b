"""torch.floor, ceil, round, trunc of integers -> the integers.

Math:   an integer is its own integer part.
Source: https://docs.pytorch.org/docs/stable/generated/torch.floor.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    (torch.floor, torch.ceil, torch.round, torch.trunc, torch.fix),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def rounding_of_integers(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds integers, which ONNX's rounding operators do not take."""
    if input.is_floating_point() or decimals:
        return NotImplemented  # type: ignore[no-any-return]
    return input.clone()
