"""torch.signbit -> Less.

Math:   a zero is negative where its reciprocal is.
Source: https://docs.pytorch.org/docs/stable/generated/torch.signbit.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.signbit, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def signbit_to_less(input: Tensor) -> Tensor:
    """Whether the sign is set. That of NaN counts as not set.

    Stock TorchScript has no symbolic for it, stock dynamo misses the sign of -0.0.
    """
    if not input.is_floating_point():
        return input < 0
    return (input < 0) | (1 / input < 0)
