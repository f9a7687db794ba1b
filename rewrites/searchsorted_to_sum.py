"""torch.searchsorted -> the number of smaller cells, or a binary search.

Math:   torch_onnx_compat.functional.searching.
Source: https://docs.pytorch.org/docs/stable/generated/torch.searchsorted.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.searching import positions
from torch_onnx_compat.tracing import static_size


@rewrite(torch.searchsorted, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def searchsorted_to_sum(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Position that each value has in a sorted table; neither exporter has an operator for it.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = static_size(sorted_sequence, -1)
    table = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    values = input if isinstance(input, Tensor) else torch.full((), input, dtype=table.dtype, device=table.device)
    found = positions(table, values, size, right=right or side == "right")
    return found.to(torch.int32) if out_int32 else found
