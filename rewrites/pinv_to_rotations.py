"""torch.linalg.pinv -> singular values and vectors by Jacobi's rotations, written out.

Math:   torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.pinv.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import pinv, small_sides


# float32, relative to the largest element and divided by the condition number: 3e-6 at most.
@rewrite(torch.linalg.pinv, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def pinv_to_rotations(
    A: Tensor,  # noqa: N803
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Pseudoinverse of matrices with few rows or few columns, also of those that are not of full rank.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex or hermitian ones; tolerances that
    are tensors; out=.
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex or hermitian:
        decline("the matrix must be real and hermitian=False")
    if out is not None or any(isinstance(limit, Tensor) for limit in (rcond, atol, rtol)):
        decline("out must be None and the tolerances numbers, got a tensor")
    rows, columns = small_sides(A)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 0.0 if atol else max(rows, columns) * torch.finfo(A.dtype).eps
    return pinv(A, rows, columns, atol=atol or 0.0, rtol=rtol)
