"""torch.roll -> two slices put together the other way round.

Math:   rolling by s along an axis of n cells puts cell (-s mod n) first, so y = cat(x[first:], x[:first]).
Source: https://pytorch.org/docs/stable/generated/torch.roll.html
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.roll, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def roll_to_slices(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Rolls one axis after the other, or the flattened tensor where no axis is named.

    TorchScript refuses dims=None, errs on shifts beyond the size and freezes those computed from sizes; dynamo refuses
    these last, and its file fails on an empty axis.
    """
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = () if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
    sizes = [static_size(input, dim) for dim in dims or range(input.dim())]
    if not dims:
        flat = input.reshape(-1)
        total = flat.shape[0] if None in sizes else prod(size for size in sizes if size is not None)
        return _rolled(flat, shifts[0], 0, total).reshape(input.shape)
    output = input
    for shift, dim, size in zip(shifts, dims, sizes, strict=True):
        output = _rolled(output, shift, dim, input.shape[dim] if size is None else size)
    return output


def _rolled(x: Tensor, shift: int, dim: int, size: int) -> Tensor:
    if isinstance(shift, int) and isinstance(size, int) and (size == 0 or shift % size == 0):
        return x.clone()  # the result is never the argument itself, which a later operation may change in place
    # 1 // (size + 1) is 1 for an axis that is empty at run time, else 0: nothing is divided by 0.
    first = -shift % (size + 1 // (size + 1))
    return torch.cat((x.narrow(dim, first, size - first), x.narrow(dim, 0, first)), dim)
