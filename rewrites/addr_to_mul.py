"""torch.addr -> beta input + alpha vec1 vec2^T.

Math:   by definition; beta = 0 drops the input, NaN and all.
Source: https://docs.pytorch.org/docs/stable/generated/torch.addr.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.addr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addr_to_mul(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of two vectors, outer, added; stock TorchScript has no symbolic for it."""
    product = vec1.unsqueeze(1) * vec2
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled
