"""torch.cumulative_trapezoid -> the running sum of trapezoids.

Math:   torch_onnx_compat.functional.trapezoids.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cumulative_trapezoid.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.trapezoids import trapezoids


@rewrite(torch.cumulative_trapezoid, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def cumulative_trapezoid_to_cumsum(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """Running integral by the trapezoidal rule; stock TorchScript has no symbolic for it."""
    return trapezoids(y, x, 1.0 if dx is None else dx, dim).cumsum(dim)
