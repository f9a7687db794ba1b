"""torch.digamma -> Log and a series.

Math:   torch_onnx_compat.functional.special.digamma.
Source: https://docs.pytorch.org/docs/stable/special.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.special import digamma


@rewrite(
    (torch.digamma, torch.special.digamma, torch.special.psi),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def digamma_to_log(input: Tensor) -> Tensor:
    """Derivative of lgamma; neither exporter has an operator for it."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return digamma(x)
