"""torch.unique(return_inverse=True) -> that of the flat tensor, the inverse in the tensor's shape.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.unique.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.unique, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def unique_inverse(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> tuple[Tensor, ...]:
    """Distinct values and where each one went; stock TorchScript returns that flat."""
    if not return_inverse or dim is not None:
        return NotImplemented  # type: ignore[no-any-return]
    values, inverse, *counts = torch.unique(input.reshape(-1), sorted, True, return_counts)
    return values, inverse.reshape(input.shape), *counts
