"""repeat_interleave by a number computed from sizes, by 0, or with an output_size -> expand, narrow, or without it.

Math:   repeating each cell r times is a new axis of r equal cells, flattened into the one before it. The output_size
        only spares torch a look at the numbers.
Source: https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.repeat_interleave, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def repeat_interleave_by_size(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats the cells of an axis; stock dynamo errs on dynamic numbers, and fails on 0 and on output_size."""
    if repeats is None or isinstance(repeats, Tensor):
        if output_size is None:
            return NotImplemented  # type: ignore[no-any-return]
        return torch.repeat_interleave(input) if repeats is None else torch.repeat_interleave(input, repeats, dim)
    if type(repeats) is int and repeats:
        return NotImplemented  # type: ignore[no-any-return]
    x, axis = (input.flatten(), 0) if dim is None else (input, dim % input.dim())
    if type(repeats) is int:
        return x.narrow(axis, 0, 0)
    shape = [*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]]
    return x.unsqueeze(axis + 1).expand(shape).flatten(axis, axis + 1)
