"""torch.triu_indices of sizes that vary -> places of the upper triangle's mask.

Math:   cell (r, c) belongs to the upper triangle if and only if c >= r + offset.
Source: https://docs.pytorch.org/docs/stable/generated/torch.triu_indices.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.triu_indices, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def triu_indices_to_nonzero(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the upper triangle; both exporters fail on sizes that vary, fixed ones need no entry."""
    if type(row) is int and type(col) is int:
        return NotImplemented  # type: ignore[no-any-return]
    device = options.get("device")
    rows, columns = torch.arange(row, device=device).unsqueeze(1) + offset, torch.arange(col, device=device)
    places = torch.nonzero(columns >= rows).t()
    return places.to(options["dtype"]) if options.get("dtype") is not None else places
