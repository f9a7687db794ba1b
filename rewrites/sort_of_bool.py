"""torch.sort of booleans -> that of numbers.

Math:   False is 0 and True is 1.
Source: https://docs.pytorch.org/docs/stable/generated/torch.sort.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.sort, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def sort_of_bool(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: Any = None
) -> tuple[Tensor, Tensor]:
    """Sorts booleans, which ONNX's TopK does not take; among equal values it keeps their order."""
    if input.dtype != torch.bool or out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    values, indices = torch.sort(input.to(torch.int32), dim=dim, descending=descending)
    return torch.return_types.sort((values.to(torch.bool), indices))
