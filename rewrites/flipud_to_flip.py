"""torch.flipud -> torch.flip of axis 0.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.flipud.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.flipud, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def flipud_to_flip(input: Tensor) -> Tensor:
    """Reverses rows; stock TorchScript has no symbolic for it."""
    return torch.flip(input, (0,))
