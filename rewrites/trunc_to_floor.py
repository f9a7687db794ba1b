"""torch.trunc -> Floor of the positive, Ceil of the negative.

Math:   by definition; the integer part of an integer is itself.
Source: https://docs.pytorch.org/docs/stable/generated/torch.trunc.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.trunc, torch.fix), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def trunc_to_floor(input: Tensor) -> Tensor:
    """Rounds toward zero; stock TorchScript has no symbolic for it."""
    if not input.is_floating_point():
        return input.clone()
    return torch.where(input < 0, torch.ceil(input), torch.floor(input))
