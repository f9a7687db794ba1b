"""torch.atan2 -> Atan of the quotient, and half a turn where x is negative.

Math:   atan(y / x), plus pi with the sign of y for x < 0; the sign of a zero is that of its reciprocal. A quotient
        of equal zeros or infinities is that of their signs, 0 and 1 for either.
Source: https://docs.pytorch.org/docs/stable/generated/torch.atan2.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.atan2, torch.arctan2), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def atan2_to_atan(input: Tensor, other: Tensor) -> Tensor:
    """Angle of a point; stock turns -pi for pi where y is 0, and NaN where both are 0 or infinite."""
    dtype = torch.promote_types(input.dtype, other.dtype)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    y, x = input.to(dtype), other.to(dtype)
    turn = torch.where((y < 0) | (1 / y < 0), -math.pi, math.pi)
    is_left = (x < 0) | (1 / x < 0)
    both_infinite = torch.isinf(x) & torch.isinf(y)
    quotient = torch.where(both_infinite, torch.sign(x) * torch.sign(y), y / x)
    angle = torch.atan(torch.where((x == 0) & (y == 0), y * torch.where(is_left, -1.0, 1.0), quotient))
    return torch.where(is_left, angle + turn.to(dtype), angle)
