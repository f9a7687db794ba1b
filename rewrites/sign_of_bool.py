"""torch.sign of booleans -> the booleans.

Math:   the sign of 0 is 0, that of 1 is 1.
Source: https://docs.pytorch.org/docs/stable/generated/torch.sign.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.sign, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def sign_of_bool(input: Tensor) -> Tensor:
    """Signs of booleans, of which stock TorchScript makes a file that is not valid."""
    if input.dtype != torch.bool:
        return NotImplemented  # type: ignore[no-any-return]
    return input.clone()
