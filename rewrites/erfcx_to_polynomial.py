"""torch.special.erfcx -> a function that is close to a polynomial.

Math:   torch_onnx_compat.functional.error_function.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.erfcx
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.error_function import erfcx


@rewrite(torch.special.erfcx, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def erfcx_to_polynomial(input: Tensor) -> Tensor:
    """erfc(x) exp(x^2); stock TorchScript has no symbolic, stock dynamo errs on large x.

    Declines: float64.
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfcx(x)
