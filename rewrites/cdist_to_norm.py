"""torch.cdist -> norms of the differences, or products of the points where eager torch takes those.

Math:   torch_onnx_compat.functional.distances.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.distances import euclidean_by_products, norm
from torch_onnx_compat.tracing import static_size

_FEW = 25
"""Number of points up to which eager torch takes the differences."""


@rewrite(torch.cdist, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cdist_to_norm(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances of each point to each other; stock dynamo refuses it, stock TorchScript errs for p != 2."""
    if p == 2 and compute_mode == "use_mm_for_euclid_dist":
        return NotImplemented  # type: ignore[no-any-return]
    points = [static_size(x, -2) for x in (x1, x2)]
    if p == 2 and not compute_mode.startswith("donot") and any(size is not None and size > _FEW for size in points):
        return euclidean_by_products(x1, x2)
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)
