"""torch.softmax(dtype=) -> the tensor converted, then torch.softmax.

Math:   by definition: the conversion comes first.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.softmax, torch.special.softmax), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Converts first; stock does so last, which loses digits and fails on integers."""
    if dtype is None or dtype == input.dtype:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.softmax(input.to(dtype), dim)
