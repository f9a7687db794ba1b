"""repeat_interleave with a tensor of numbers -> a table of repetitions, and the rows in which it is true.

Math:   row i of the table (n, largest number) begins with as many trues as cell i is repeated; its nonzero entries, row
        by row, name the cells of the result.
Source: https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.repeat_interleave, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def repeat_interleave_to_nonzero(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats each cell of an axis its own number of times; stock TorchScript errs on constants, and writes loops."""
    if repeats is None:
        return _cells(input)
    if not isinstance(repeats, Tensor) or repeats.dim() == 0 or static_size(repeats, 0) == 1:
        return NotImplemented  # type: ignore[no-any-return]
    x, axis = (input.flatten(), 0) if dim is None else (input, dim)
    return x.index_select(axis, _cells(repeats))


def _cells(repeats: Tensor) -> Tensor:
    longest: Any = torch.cat((repeats, repeats.new_zeros(1))).amax()  # amax of nothing is an error
    table = torch.arange(longest, device=repeats.device) < repeats.unsqueeze(1)
    return table.nonzero()[:, 0]
