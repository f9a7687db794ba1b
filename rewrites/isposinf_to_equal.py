"""torch.isposinf -> Equal.

Math:   one number alone is equal to infinity.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isposinf.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.isposinf, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isposinf_to_equal(input: Tensor) -> Tensor:
    """Whether a number is positive infinity; stock TorchScript has no symbolic for it."""
    if not input.is_floating_point():
        return torch.zeros_like(input, dtype=torch.bool)
    return input == float("inf")
