"""torch.erfinv -> polynomials of a logarithm.

Math:   torch_onnx_compat.functional.special.erfinv.
Source: https://docs.pytorch.org/docs/stable/special.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.special import erfinv


@rewrite(
    (torch.erfinv, torch.special.erfinv),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def erfinv_to_polynomials(input: Tensor) -> Tensor:
    """Inverse of the error function; neither exporter has an operator for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfinv(x)
