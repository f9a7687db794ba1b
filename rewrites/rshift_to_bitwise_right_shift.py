"""x >> y -> torch.bitwise_right_shift.

Math:   the same by another name.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bitwise_right_shift.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(Tensor.__rshift__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def rshift_to_bitwise_right_shift(self: Tensor, other: Tensor | int) -> Tensor:
    """Shifts; stock dynamo knows the function, not the operator."""
    return torch.bitwise_right_shift(self, other)
