"""torch.copysign -> the magnitude times -1 or 1.

Math:   a zero is negative where its reciprocal is. NaN counts as positive.
Source: https://docs.pytorch.org/docs/stable/generated/torch.copysign.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.copysign, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def copysign_to_where(input: Tensor, other: Tensor | float) -> Tensor:
    """Magnitude of one and sign of the other; neither exporter has an operator for it."""
    dtype = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    if isinstance(other, Tensor):
        dtype = torch.promote_types(dtype, other.dtype)
        sign = other.to(dtype)
        magnitude = input.to(dtype).abs()
        # Not the negated magnitude: onnxruntime's Neg makes 0 of 0 on some processors.
        return magnitude * torch.where((sign < 0) | (1 / sign < 0), -1.0, 1.0).to(dtype)
    magnitude = input.to(dtype).abs()
    return magnitude * math.copysign(1.0, other)
