"""torch.addmv -> beta input + alpha mat @ vec.

Math:   by definition; beta = 0 drops the input, NaN and all.
Source: https://docs.pytorch.org/docs/stable/generated/torch.addmv.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.addmv, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addmv_to_matmul(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of a matrix and a vector, added; stock TorchScript has no symbolic for it."""
    product = torch.mv(mat, vec)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled
