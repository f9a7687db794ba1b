"""torch.select_scatter -> what stands before, the slice, and what stands behind.

Source: https://docs.pytorch.org/docs/stable/generated/torch.select_scatter.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.select_scatter, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def select_scatter_to_cat(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with one slice exchanged; stock TorchScript has no symbolic for it."""
    axis = dim % input.dim()
    before = (*(slice(None),) * axis, slice(None, index))
    behind = (*(slice(None),) * axis, slice(index + 1, None))
    parts = [input[before], src.unsqueeze(axis)]
    if type(index) is not int or index != -1:
        parts.append(input[behind])
    return torch.cat(parts, axis)
