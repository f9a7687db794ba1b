"""torch.trapezoid -> the sum of trapezoids.

Math:   torch_onnx_compat.functional.trapezoids.
Source: https://docs.pytorch.org/docs/stable/generated/torch.trapezoid.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.trapezoids import trapezoids


@rewrite((torch.trapezoid, torch.trapz), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def trapezoid_to_sum(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Integral by the trapezoidal rule; stock TorchScript has no symbolic for it."""
    return trapezoids(y, x, 1.0 if dx is None else dx, dim).sum(dim)
