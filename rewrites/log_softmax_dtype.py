"""torch.log_softmax(dtype=) -> the tensor converted, then torch.log_softmax.

Math:   by definition: the conversion comes first.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    (torch.log_softmax, torch.special.log_softmax), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
def log_softmax_dtype(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Converts first; stock does so last, which loses digits and fails on integers."""
    if dtype is None or dtype == input.dtype:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.log_softmax(input.to(dtype), dim)
