"""torch.cholesky_inverse -> the inverse of the factor, by substitution, and a product.

Math:   the inverse of L L^T is M^T M, M being the inverse of L.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_inverse.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import identity, small_size, solve_triangular


@rewrite(torch.cholesky_inverse, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_inverse_to_substitution(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Inverse of small matrices whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(L)
    lower = L.transpose(-2, -1) if upper else L
    right = torch.zeros_like(lower) + identity(size, lower)
    half = solve_triangular(lower, right, size, upper=False)
    return half.transpose(-2, -1) @ half
