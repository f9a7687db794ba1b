"""torch.nansum -> Sum, with 0 for NaN.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nansum.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nansum, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def nansum_to_sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Sum of what is not NaN; stock TorchScript has no symbolic for it."""
    x = torch.where(torch.isnan(input), torch.zeros_like(input), input) if input.is_floating_point() else input
    return x.sum(dtype=dtype) if dim is None else x.sum(dim, keepdim, dtype=dtype)
