"""torch.atan2 -> Atan of the quotient, and half a turn where x is negative.

Math:   torch_onnx_compat.functional.angles.
Source: https://docs.pytorch.org/docs/stable/generated/torch.atan2.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.angles import atan2


@rewrite((torch.atan2, torch.arctan2), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def atan2_to_atan(input: Tensor, other: Tensor) -> Tensor:
    """Angle of a point; stock turns -pi for pi where y is 0, and NaN where both are 0 or infinite."""
    dtype = torch.promote_types(input.dtype, other.dtype)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return atan2(input.to(dtype), other.to(dtype))
