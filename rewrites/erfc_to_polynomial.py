"""torch.erfc -> exp(-x^2) times a function that is close to a polynomial.

Math:   torch_onnx_compat.functional.error_function.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.erfc
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.error_function import erfc


@rewrite((torch.erfc, torch.special.erfc), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def erfc_to_polynomial(input: Tensor) -> Tensor:
    """Complementary error function; stock TorchScript has no symbolic, stock dynamo's 1 - erf(x) is 0 from 4 on.

    Declines: float64.
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfc(x)
