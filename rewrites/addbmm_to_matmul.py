"""torch.addbmm -> beta input + alpha (batch1 @ batch2).sum(0).

Math:   by definition; beta = 0 drops the input, NaN and all.
Source: https://docs.pytorch.org/docs/stable/generated/torch.addbmm.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.addbmm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addbmm_to_matmul(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of batches of matrices, summed, added; stock TorchScript has no symbolic for it."""
    product = torch.bmm(batch1, batch2).sum(0)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled
