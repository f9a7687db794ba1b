"""x << y -> torch.bitwise_left_shift.

Math:   the same by another name.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_left_shift.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(Tensor.__lshift__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def lshift_to_bitwise_left_shift(self: Tensor, other: Tensor | int) -> Tensor:
    """Shifts; stock dynamo knows the function, not the operator."""
    return torch.bitwise_left_shift(self, other)
