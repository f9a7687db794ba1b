"""torch.slice_scatter -> index_copy at the places of the slice, constant where the size is fixed.

Source: https://docs.pytorch.org/docs/stable/generated/torch.slice_scatter.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import constant, static_size


@rewrite(torch.slice_scatter, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def slice_scatter_to_index_copy(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with a slice exchanged; stock TorchScript has no symbolic for it."""
    size = static_size(input, dim)
    if size is not None and all(bound is None or type(bound) is int for bound in (start, end)):
        places = constant(range(*slice(start, end, step).indices(size)), input, torch.int64)
    else:
        places = torch.arange(input.shape[dim], device=input.device)[start:end:step]
    return input.index_copy(dim % input.dim(), places, src)
