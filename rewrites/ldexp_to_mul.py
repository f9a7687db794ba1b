"""torch.ldexp -> the product with a power of two.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.ldexp.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.ldexp, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def ldexp_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Product with a power of two; stock TorchScript has no symbolic for it."""
    return input * torch.pow(2.0, other)
