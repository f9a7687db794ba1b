"""rot90 -> flips and a transposition.

Math:   a quarter turn from the first axis towards the second is the flip of the second, then their exchange; half a
        turn is the flip of both.
Source: https://docs.pytorch.org/docs/stable/generated/torch.rot90.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.rot90, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def rot90_to_flip(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turns a plane by k quarters; stock TorchScript has no symbolic for it."""
    first, second = dims
    quarters = k % 4
    if quarters == 0:
        return input.clone()
    if quarters == 2:
        return input.flip(first, second)
    return input.flip(second if quarters == 1 else first).transpose(first, second)
