"""torch.linalg.solve_triangular -> substitution, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve_triangular; X A = B is A^T X^T = B^T.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve_triangular.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import common_batch, small_size, solve_triangular


@rewrite(torch.linalg.solve_triangular, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def solve_triangular_to_substitution(
    input: Tensor,
    B: Tensor,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Solves small triangular systems.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(input)
    matrix, right = common_batch(input, B)
    if left:
        return solve_triangular(matrix, right, size, upper=upper, unit=unitriangular)
    matrix, right = matrix.transpose(-2, -1), right.transpose(-2, -1)
    return solve_triangular(matrix, right, size, upper=not upper, unit=unitriangular).transpose(-2, -1)
