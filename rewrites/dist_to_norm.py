"""torch.dist -> the norm of the difference.

Math:   torch_onnx_compat.functional.distances, over all cells.
Source: https://docs.pytorch.org/docs/stable/generated/torch.dist.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.distances import norm


@rewrite(torch.dist, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def dist_to_norm(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Distance of two tensors; stock TorchScript has no symbolic for it."""
    return norm((input - other).reshape(-1), p)
