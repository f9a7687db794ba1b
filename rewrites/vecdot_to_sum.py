"""torch.linalg.vecdot -> the sum of products.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vecdot.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.linalg.vecdot, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def vecdot_to_sum(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Dot products along an axis; stock TorchScript has no symbolic for them."""
    return (x * y).sum(dim)
