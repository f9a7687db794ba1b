"""torch.linalg.inv_ex -> Gauss-Jordan elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does. info is
        the 1-based number of the first pivot that is 0, or 0; a singular matrix has infinities or NaN here.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import inverse, small_size


@rewrite(torch.linalg.inv_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def inv_ex_to_elimination(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:  # noqa: N803
    """Inverse of small invertible matrices, with an info that says 0.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    inverted = inverse(A, small_size(A))
    info = torch.zeros_like(inverted[..., 0, 0], dtype=torch.int32)
    return torch.return_types.linalg_inv_ex((inverted, info))
