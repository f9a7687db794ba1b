"""torch.special.log_ndtr -> the logarithm of half of erfc(-x / sqrt(2)).

Math:   torch_onnx_compat.functional.error_function.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.log_ndtr
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.error_function import log_ndtr


@rewrite(torch.special.log_ndtr, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def log_ndtr_to_polynomial(input: Tensor) -> Tensor:
    """Logarithm of the normal distribution function; stock TorchScript has no symbolic, stock dynamo's is -inf.

    Declines: float64.
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return log_ndtr(x)
