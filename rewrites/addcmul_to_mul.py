"""torch.addcmul of integers -> Mul and Add.

Math:   input + value * tensor1 * tensor2.
Source: https://docs.pytorch.org/docs/stable/generated/torch.addcmul.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.addcmul, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def addcmul_to_mul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """Adds a product of integers; stock TorchScript makes floats of them."""
    if input.is_floating_point():
        return NotImplemented  # type: ignore[no-any-return]
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)
