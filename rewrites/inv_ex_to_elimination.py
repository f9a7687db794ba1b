"""torch.linalg.inv_ex -> Gauss-Jordan elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does. info is
        the 1-based number of the first pivot that is 0, or 0.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import inverse_with_info, small_size


@rewrite(torch.linalg.inv_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def inv_ex_to_elimination(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:  # noqa: N803
    """Inverse of small matrices; where info is not 0, torch's inverse holds other numbers, this one infinities or NaN.

    A pivot that is 0 but for rounding may be counted otherwise than by LAPACK.
    With check_errors, which makes torch raise for a singular matrix, the file raises nothing.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    return torch.return_types.linalg_inv_ex(inverse_with_info(A, small_size(A)))  # type: ignore[attr-defined]
