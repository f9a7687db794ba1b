"""torch.linalg.eigvalsh -> Jacobi's rotations, written out.

Math:   torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigvalsh.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import eigh, mirrored
from torch_onnx_compat.functional.linear_algebra import small_size


# float32, eigenvalues relative to the largest, 2000 matrices of each size and of nine kinds: 7e-6 at most.
@rewrite(torch.linalg.eigvalsh, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def eigvalsh_to_rotations(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Ascending eigenvalues of small symmetric matrices.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones; out=.
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(A)
    return eigh(mirrored(A, size, UPLO), size)[0]
