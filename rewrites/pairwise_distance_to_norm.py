"""F.pairwise_distance -> the norm of the difference.

Math:   torch_onnx_compat.functional.distances, of x1 - x2 + eps.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pairwise_distance.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.distances import norm


@rewrite(torch.nn.functional.pairwise_distance, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def pairwise_distance_to_norm(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Distances of pairs of points; stock takes odd powers of negative numbers."""
    return norm(x1 - x2 + eps, p, keepdim=keepdim)
