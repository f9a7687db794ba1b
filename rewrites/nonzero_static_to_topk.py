"""torch.nonzero_static -> the k largest of a key: places of a fixed number, for engines without sizes that data decide.

Math:   of n flat cells, cell i has the key n - i where it is not zero, else 0. The k largest keys in descending order
        are the first k cells that are not zero, in order; behind them keys of 0 stand for the fill value.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nonzero_static.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import size_tensor, static_size


@rewrite(torch.nonzero_static, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def nonzero_static_to_topk(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Places (size, D) of what is not zero in a tensor of D axes, in order, filled up with a number.

    Declines: a tensor without axes.
    """
    if input.dim() == 0:
        decline("the tensor must have an axis")
    flat = (input != 0).reshape(-1)
    numbers = torch.arange(flat.shape[0], 0, -1, device=input.device)
    keys = torch.where(flat, numbers, torch.zeros_like(numbers))
    keys = torch.cat((keys, keys.new_zeros(size)))  # there may be fewer cells than places
    best = keys.topk(size).values.reshape(size)  # which says to the exporter that the size is fixed
    place = flat.shape[0] - best
    columns: list[Tensor] = []
    for axis in reversed(range(input.dim())):
        fixed = static_size(input, axis)
        length: Any = size_tensor(input, axis).clamp(min=1) if fixed is None else max(fixed, 1)
        columns.append(place % length)
        place = place // length
    found = torch.stack(columns[::-1], 1)
    return torch.where((best > 0).unsqueeze(1), found, torch.full_like(found, fill_value))
