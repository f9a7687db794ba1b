"""F.softshrink -> x less what x is when clamped to [-lambda, lambda].

Math:   x - lambda above, x + lambda below, x - x between; NaN stays.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softshrink.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nn.functional.softshrink, always=True, exactness=Exactness.BITWISE)
def softshrink_to_sub(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Soft shrinkage, in fewer nodes than stock's, which loses NaN."""
    return input - input.clamp(-lambd, lambd)
