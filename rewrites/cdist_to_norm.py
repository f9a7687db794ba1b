"""torch.cdist -> norms of the differences.

Math:   torch_onnx_compat.functional.distances.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.distances import norm


@rewrite(torch.cdist, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cdist_to_norm(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances of each point to each other; stock dynamo refuses it, stock TorchScript errs for p != 2."""
    if p == 2 and compute_mode == "use_mm_for_euclid_dist":
        return NotImplemented  # type: ignore[no-any-return]
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)
