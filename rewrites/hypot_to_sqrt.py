"""torch.hypot -> Sqrt of a sum of squares.

Math:   with m the larger magnitude, sqrt(x^2 + y^2) = m sqrt((x / m)^2 + (y / m)^2), which neither
        overflows nor vanishes; m = 1 where it is 0 or infinite. Infinity outweighs NaN.
Source: https://docs.pytorch.org/docs/stable/generated/torch.hypot.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import constant


@rewrite(torch.hypot, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def hypot_to_sqrt(input: Tensor, other: Tensor) -> Tensor:
    """Length of the hypotenuse; neither exporter has an operator for it."""
    dtype = torch.promote_types(input.dtype, other.dtype)
    x, y = input.to(dtype).abs(), other.to(dtype).abs()
    larger = torch.maximum(x, y)
    scale = torch.where((larger == 0) | torch.isinf(larger), torch.ones_like(larger), larger)
    length = torch.sqrt((x / scale) ** 2 + (y / scale) ** 2) * scale
    return torch.where(torch.isinf(x) | torch.isinf(y), constant(math.inf, x), length)
