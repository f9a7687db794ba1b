"""torch.linalg.cholesky -> the columns of the factor, one after the other.

Math:   torch_onnx_compat.functional.linear_algebra.cholesky. The upper factor is the lower one of the transposed
        matrix, transposed, so that it is the upper triangle that is read, as torch does.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import cholesky, small_size


@rewrite(torch.linalg.cholesky, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_to_columns(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Factor of small positive definite matrices; of others, which torch refuses, it has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = small_size(input)
    if upper:
        return cholesky(input.transpose(-2, -1), size).transpose(-2, -1)
    return cholesky(input, size)
