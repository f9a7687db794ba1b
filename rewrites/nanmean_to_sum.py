"""torch.nanmean -> Sum over the number of what is not NaN.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nanmean.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nanmean, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def nanmean_to_sum(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Mean of what is not NaN; stock TorchScript has no symbolic for it."""
    is_nan = torch.isnan(input)
    x, counted = torch.where(is_nan, torch.zeros_like(input), input), torch.logical_not(is_nan).to(input.dtype)
    if dim is None:
        return x.sum() / counted.sum()
    return x.sum(dim, keepdim) / counted.sum(dim, keepdim)
