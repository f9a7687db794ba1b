"""torch.logaddexp2 -> the larger exponent, and the logarithm of what the smaller adds.

Math:   m + log(1 + b^-|x - y|), m the larger, which does not overflow; m alone where both are the same infinity.
Source: https://docs.pytorch.org/docs/stable/generated/torch.logaddexp2.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.logaddexp2, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logaddexp2_to_log(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of a sum of powers; stock TorchScript has no symbolic, stock dynamo's is NaN of infinities."""
    larger = torch.maximum(input, other)
    gap = torch.abs(input - other)
    return torch.where(
        torch.isinf(larger) & (input == other),
        larger,
        larger + torch.log1p(torch.exp(-gap * math.log(2))) / math.log(2),
    )
