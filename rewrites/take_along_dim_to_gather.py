"""torch.take_along_dim -> gather.

Math:   gather of tensors that are broadcast against each other on all other axes.
Source: https://docs.pytorch.org/docs/stable/generated/torch.take_along_dim.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.take_along_dim, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def take_along_dim_to_gather(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Values at places along an axis; stock TorchScript has no symbolic for it, stock dynamo fixes dynamic axes.

    Only axes that are known to be 1 are broadcast.
    """
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % input.dim()
    source, places = [-1] * input.dim(), [-1] * input.dim()
    for other in range(input.dim()):
        single, chosen = static_size(input, other) == 1, static_size(indices, other) == 1
        if other != axis and chosen and not single:
            places[other] = input.shape[other]
        elif other != axis and single and not chosen:
            source[other] = indices.shape[other]
    return _expanded(input, source).gather(axis, _expanded(indices, places))


def _expanded(x: Tensor, sizes: list[int]) -> Tensor:
    return x if all(type(size) is int and size == -1 for size in sizes) else x.expand(sizes)
