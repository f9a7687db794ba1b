"""torch.inner -> MatMul with the second transposed.

Math:   the products of the last axes, summed.
Source: https://docs.pytorch.org/docs/stable/generated/torch.inner.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.inner, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def inner_to_matmul(input: Tensor, other: Tensor) -> Tensor:
    """Inner product of last axes; stock TorchScript has no symbolic for it."""
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.dim() <= 2 and other.dim() <= 2:
        return input @ (other if other.dim() == 1 else other.transpose(0, 1))
    result: Tensor = torch.tensordot(input, other, ([-1], [-1]))
    return result
