"""torch.positive, +x -> x.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.positive.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.positive, Tensor.__pos__), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def positive_to_identity(input: Tensor) -> Tensor:
    """The tensor itself; stock TorchScript has no symbolic for the plus sign."""
    return input
