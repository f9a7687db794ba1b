"""one_hot without a number of classes -> a comparison with the numbers up to the largest one.

Math:   entry c of the last axis is whether the number is c, for c from 0 to the largest of all.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
"""

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, rewrite


# TorchScript writes a negative depth; torch.export refuses a size that is read from data.
@rewrite(functional.one_hot, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def one_hot_of_largest(input: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vectors as long as the largest number needs."""
    if num_classes != -1:
        return NotImplemented  # type: ignore[no-any-return]
    cells = torch.arange(input.max() + 1, device=input.device)  # type: ignore[call-overload]
    ones: Tensor = (input.unsqueeze(-1) == cells).to(torch.int64)
    return ones
