"""torch.linalg.solve -> Gauss-Jordan elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does.
        X A = B is A^T X^T = B^T.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import common_batch, is_vector, small_size, solve


@rewrite(torch.linalg.solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def solve_to_elimination(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Solves small systems; what torch refuses, a singular matrix, gives infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(A)
    if is_vector(A, B):
        columns = B.unsqueeze(-1)
        return solve(A, columns if B.dim() == A.dim() - 1 else columns + torch.zeros_like(A[..., :1]), size).squeeze(-1)
    matrix, right = common_batch(A, B)
    if left:
        return solve(matrix, right, size)
    return solve(matrix.transpose(-2, -1), right.transpose(-2, -1), size).transpose(-2, -1)
