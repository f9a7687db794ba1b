"""torch.fmax -> Max of what is not NaN.

Math:   the maximum, or the other operand where one is NaN.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fmax.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.fmax, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmax_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Larger of two numbers, NaN only if both are; neither exporter has an operator for it."""
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype), other.to(dtype)
    if not dtype.is_floating_point:
        return torch.maximum(x, y)
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))
