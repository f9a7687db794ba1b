"""torch.special.ndtr -> half of erfc(-x / sqrt(2)).

Math:   torch_onnx_compat.functional.error_function.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.ndtr
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.error_function import erfc


@rewrite(torch.special.ndtr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def ndtr_to_erfc(input: Tensor) -> Tensor:
    """Distribution function of the normal distribution; stock TorchScript has no symbolic for it.

    Declines: float64.
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfc(x * -math.sqrt(0.5)) * 0.5
