"""torch.i0 -> polynomials and Exp.

Math:   torch_onnx_compat.functional.special.i0e.
Source: https://docs.pytorch.org/docs/stable/special.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.special import i0e


@rewrite((torch.i0, torch.special.i0), needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-6)
def i0_to_polynomials(input: Tensor) -> Tensor:
    """Modified Bessel function of order 0; neither exporter has an operator for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return i0e(x) * torch.exp(x.abs())
