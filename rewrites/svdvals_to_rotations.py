"""torch.linalg.svdvals -> Jacobi's rotations of the columns, written out.

Math:   torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svdvals.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import singular_values, small_sides


# float32, relative to the largest value, 2000 matrices of each size and of nine kinds: 2e-6 at most.
@rewrite(torch.linalg.svdvals, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def svdvals_to_rotations(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Singular values, in descending order, of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones; out=.
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    if out is not None:
        decline("out must be None, got a tensor")
    return torch.sort(singular_values(A, *small_sides(A)), -1, descending=True)[0]
