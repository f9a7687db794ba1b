"""torch.linalg.cholesky_ex -> the columns of the factor, one after the other.

Math:   torch_onnx_compat.functional.linear_algebra.cholesky.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import cholesky, small_size


@rewrite(torch.linalg.cholesky_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_ex_to_columns(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Factor of small positive definite matrices, with an info that says 0; of others it has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got tensors")
    size = small_size(input)
    factor = cholesky(input.transpose(-2, -1) if upper else input, size)
    info = torch.zeros_like(factor[..., 0, 0], dtype=torch.int32)
    return torch.return_types.linalg_cholesky_ex((factor.transpose(-2, -1) if upper else factor, info))
