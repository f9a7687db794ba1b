"""torch.fmin -> Min of what is not NaN.

Math:   the minimum, or the other operand where one is NaN.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fmin.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.fmin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fmin_to_where(input: Tensor, other: Tensor) -> Tensor:
    """Smaller of two numbers, NaN only if both are; neither exporter has an operator for it."""
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype), other.to(dtype)
    if not dtype.is_floating_point:
        return torch.minimum(x, y)
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))
