"""torch.logdet -> the pivots of an elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.log_determinant; NaN where the determinant is negative.
Source: https://docs.pytorch.org/docs/stable/generated/torch.logdet.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.linear_algebra import log_determinant, small_size
from torch_onnx_compat.tracing import constant


@rewrite(torch.logdet, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logdet_to_elimination(input: Tensor) -> Tensor:
    """Logarithm of the determinant of small matrices, also where the determinant itself is beyond the floats.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    sign, logarithm = log_determinant(input, small_size(input))
    return torch.where(sign < 0, constant(float("nan"), logarithm), logarithm)
