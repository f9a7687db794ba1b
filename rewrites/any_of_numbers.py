"""torch.any of numbers, or along several axes -> any of booleans, axis by axis.

Math:   a number counts as true unless it is 0.
Source: https://docs.pytorch.org/docs/stable/generated/torch.any.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.any, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def any_of_numbers(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any of the cells are true.

    Stock TorchScript refuses numbers and several axes, and stock dynamo returns booleans for bytes.
    """
    several = isinstance(dim, (tuple, list))
    if input.dtype == torch.bool and not several:
        return NotImplemented  # type: ignore[no-any-return]
    result = input if input.dtype == torch.bool else input != 0
    if dim is None:
        result = result.any()
    else:
        for axis in sorted(((d % input.dim()) for d in (dim if several else (dim,))), reverse=True):
            result = result.any(axis, keepdim)
    return result.to(torch.uint8) if input.dtype == torch.uint8 else result
