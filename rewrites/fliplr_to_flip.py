"""torch.fliplr -> torch.flip of axis 1.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fliplr.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.fliplr, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def fliplr_to_flip(input: Tensor) -> Tensor:
    """Reverses columns; stock TorchScript has no symbolic for it."""
    return torch.flip(input, (1,))
