"""torch.hardshrink -> 0 where |x| is at most lambda.

Math:   by definition; NaN is larger than nothing and stays.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.hardshrink, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hardshrink_to_where(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Hard shrinkage, in fewer nodes than stock TorchScript's, which loses NaN."""
    return torch.where(input.abs() <= lambd, torch.zeros((), dtype=input.dtype), input)
