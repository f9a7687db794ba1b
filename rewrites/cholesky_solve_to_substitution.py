"""torch.cholesky_solve -> two triangular systems, solved by substitution.

Math:   L L^T X = B: L Y = B, then L^T X = Y.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_solve.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import common_batch, small_size, solve_triangular


@rewrite(torch.cholesky_solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_solve_to_substitution(B: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Solves small systems whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(L)
    factor, right = common_batch(L, B)
    lower = factor.transpose(-2, -1) if upper else factor
    half = solve_triangular(lower, right, size, upper=False)
    return solve_triangular(lower.transpose(-2, -1), half, size, upper=True)
