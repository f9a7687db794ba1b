"""torch.addcdiv -> Div, Mul, Add.

Math:   input + value * tensor1 / tensor2.
Source: https://docs.pytorch.org/docs/stable/generated/torch.addcdiv.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.addcdiv, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addcdiv_to_div(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a quotient; stock TorchScript has no symbolic for it."""
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)
