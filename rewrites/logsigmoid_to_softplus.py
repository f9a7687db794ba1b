"""F.logsigmoid -> -Softplus(-x).

Math:   log(1 / (1 + exp(-x))) = -log(1 + exp(-x)), which does not underflow.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nn.functional.logsigmoid, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logsigmoid_to_softplus(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid; stock takes the logarithm of 0 below -88."""
    return -torch.nn.functional.softplus(-input)
