"""torch.lgamma -> Log of a rational function.

Math:   torch_onnx_compat.functional.special.lgamma.
Source: https://docs.pytorch.org/docs/stable/special.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.special import lgamma


@rewrite(
    (torch.lgamma, torch.special.gammaln),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def lgamma_to_log(input: Tensor) -> Tensor:
    """Logarithm of the gamma function; neither exporter has an operator for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return lgamma(x)
