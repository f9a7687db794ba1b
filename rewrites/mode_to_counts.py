"""torch.mode -> the least of the values that occur most often.

Math:   comparing an axis with itself counts how often each cell's value occurs; of the cells with the highest count
        the least value is the mode, and the last cell that holds it the index, as torch has it for short axes.
Source: https://docs.pytorch.org/docs/stable/generated/torch.mode.html; ATen/native/cpu/SortingKernel.cpp
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import constant


@rewrite(torch.mode, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def mode_to_counts(
    input: Tensor, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Most frequent value of an axis with its index; takes n * n comparisons.

    Declines: out=, bool, and a single number.
    """
    if out is not None:
        decline("out must be None, got two tensors")
    if input.dim() == 0 or input.dtype == torch.bool:
        decline("the input must be numbers along an axis")
    x = input.transpose(dim, -1)
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    limit = float("inf") if x.is_floating_point() else torch.iinfo(x.dtype).max
    is_frequent = counts == counts.amax(-1, keepdim=True)
    values = torch.where(is_frequent, x, constant(limit, x)).amin(-1, keepdim=True)
    cell = torch.arange(x.shape[-1], device=x.device)
    indices = torch.where(x == values, cell, constant(0, x, torch.int64)).amax(-1, keepdim=True)
    values, indices = values.transpose(dim, -1), indices.transpose(dim, -1)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    result: tuple[Tensor, Tensor] = torch.return_types.mode((values, indices))
    return result
