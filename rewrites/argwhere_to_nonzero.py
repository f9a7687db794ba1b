"""torch.argwhere -> torch.nonzero, which is the same for tensors with axes.

Source: https://docs.pytorch.org/docs/stable/generated/torch.argwhere.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.argwhere, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def argwhere_to_nonzero(input: Tensor) -> Tensor:
    """Places of what is not 0; stock TorchScript has none, stock dynamo errs without axes."""
    if not input.dim():
        return torch.nonzero(input.reshape(1))[:, :0]
    return torch.nonzero(input)
