"""narrow to the last cells, counted from the end -> counted from the beginning.

Math:   the last s of n cells begin at n - s. As a slice, -s to -s + s = 0 is empty.
Source: https://docs.pytorch.org/docs/stable/generated/torch.narrow.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.narrow, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def narrow_from_the_end(input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """Cuts off the end of an axis; stock TorchScript cuts an empty piece."""
    if type(start) is not int or start >= 0 or (type(length) is int and start + length < 0):
        return NotImplemented  # type: ignore[no-any-return]
    size = static_size(input, dim)
    return torch.narrow(input, dim, start + (input.shape[dim] if size is None else size), length)
