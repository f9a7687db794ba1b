"""torch.nanmedian -> one of the smallest values.

Math:   torch_onnx_compat.functional.ranks.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nanmedian.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.ranks import nanmedian
from torch_onnx_compat.tracing import static_size


@rewrite(torch.nanmedian, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def nanmedian_to_topk(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    """Lower median of an axis with its index, or of all values. Of equal cells torch names any.

    Declines: out=, and an axis of a single number.
    """
    if out is not None:
        decline("out must be None, got two tensors")
    if dim is None:
        sizes = [static_size(input, axis) for axis in range(input.dim())]
        fixed = [size for size in sizes if size is not None]
        return nanmedian(input.reshape(-1), math.prod(fixed) if len(fixed) == len(sizes) else None)[0].reshape(())
    if input.dim() == 0:
        decline("the input must have an axis, got a single number")
    found = nanmedian(input.transpose(dim, -1), static_size(input, dim))
    values, indices = (f.transpose(dim, -1) if keepdim else f.transpose(dim, -1).squeeze(dim) for f in found)
    result: tuple[Tensor, Tensor] = torch.return_types.nanmedian((values, indices))
    return result
