"""torch.isclose -> LessOrEqual.

Math:   |x - y| <= atol + rtol |y| for finite y, or x = y, or both NaN where those count as equal.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isclose.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.isclose, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def isclose_to_less(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether numbers are close; stock TorchScript has no symbolic for it."""
    near = torch.abs(input - other) <= atol + rtol * torch.abs(other)
    if input.is_floating_point():
        near = near & (torch.abs(other) != float("inf")) & (torch.abs(input) != float("inf"))
        if equal_nan:
            near = near | (torch.isnan(input) & torch.isnan(other))
    return near | (input == other)
