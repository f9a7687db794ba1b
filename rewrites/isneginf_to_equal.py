"""torch.isneginf -> Equal.

Math:   one number alone is equal to infinity.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isneginf.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.isneginf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isneginf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is negative infinity; stock TorchScript has no symbolic for it."""
    if not input.is_floating_point():
        return torch.zeros_like(input, dtype=torch.bool)
    return input == -float("inf")
