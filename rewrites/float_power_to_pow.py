"""torch.float_power -> Pow of float64.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.float_power.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.float_power, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def float_power_to_pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Powers in float64; stock TorchScript has no symbolic for it."""
    base, power = (torch.as_tensor(v).double() for v in (input, exponent))
    result: Tensor = base**power
    return result
