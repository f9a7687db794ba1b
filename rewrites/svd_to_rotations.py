"""torch.linalg.svd -> Jacobi's rotations of the columns, written out.

Math:   torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import svd
from torch_onnx_compat.functional.linear_algebra import small_size


# float32, relative to the largest value or element, 2000 matrices of each size and of nine kinds: 4e-6 at most.
@rewrite(torch.linalg.svd, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def svd_to_rotations(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:  # noqa: N803
    """Singular values, in descending order, and vectors of small matrices.

    The signs of vectors are not LAPACK's: the largest element, in magnitude, of each row of Vh is positive here, or for
    fewer rows than columns that of each column of U. Vectors that are not unique are some orthogonal ones.

    Declines: matrices of more than 8 rows or columns, or of no fixed size; complex ones; out=.
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    if out is not None:
        decline("out must be None, got tensors")
    rows, columns = small_size(A, -2), small_size(A, -1)
    left, values, right = svd(A, rows, columns)
    if not full_matrices:
        count = min(rows, columns)
        left, right = left[..., :count], right[..., :count]
    return torch.return_types.linalg_svd((left, values, right.transpose(-2, -1)))  # type: ignore[attr-defined]
