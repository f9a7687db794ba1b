"""torch.linalg.cholesky_ex -> the columns of the factor, one after the other.

Math:   torch_onnx_compat.functional.linear_algebra.cholesky. info is the size of the first leading minor
        that is not positive definite, or 0.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import cholesky_with_info, small_size


@rewrite(torch.linalg.cholesky_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_ex_to_columns(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Factor of small matrices; from the row that info names on it holds infinities or NaN, torch's other numbers.

    A minor that is singular but for rounding may be counted otherwise than by LAPACK.
    With check_errors, which makes torch raise where info is not 0, the file raises nothing.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    size = small_size(input)
    factor, info = cholesky_with_info(input.transpose(-2, -1) if upper else input, size)
    factor = factor.transpose(-2, -1) if upper else factor
    return torch.return_types.linalg_cholesky_ex((factor, info))  # type: ignore[attr-defined]
