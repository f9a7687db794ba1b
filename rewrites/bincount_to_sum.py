"""torch.bincount -> the sum of a comparison with each number.

Math:   torch_onnx_compat.functional.counting.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.counting import bincount


@rewrite(torch.bincount, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def bincount_to_sum(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Number of times that each number occurs; stock TorchScript has no symbolic for it."""
    return bincount(input, weights, minlength)
