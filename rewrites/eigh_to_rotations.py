"""torch.linalg.eigh -> Jacobi's rotations, written out.

Math:   torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import eigh, mirrored
from torch_onnx_compat.functional.linear_algebra import small_size


# float32, eigenvalues relative to the largest, 2000 matrices of each size and of nine kinds: 7e-6 at most.
@rewrite(torch.linalg.eigh, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def eigh_to_rotations(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:  # noqa: N803
    """Ascending eigenvalues and eigenvectors of small symmetric matrices.

    The signs of vectors are not LAPACK's: the largest element of each, in magnitude, is positive here. Of a repeated
    eigenvalue the vectors are some orthogonal ones. Vectors are off by the error divided by the gap to the next value.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones; out=.
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(A)
    return torch.return_types.linalg_eigh(eigh(mirrored(A, size, UPLO), size))  # type: ignore[attr-defined]
