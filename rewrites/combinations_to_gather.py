"""torch.combinations -> an index, constant where the size is fixed.

Math:   the places of r elements in ascending order, strictly unless with_replacement.
Source: https://docs.pytorch.org/docs/stable/generated/torch.combinations.html
"""

from itertools import combinations, combinations_with_replacement, pairwise

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import constant, static_size


@rewrite(torch.combinations, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def combinations_to_gather(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take r elements; stock TorchScript has none, stock dynamo fails on dynamic sizes."""
    size = static_size(input, 0)
    if size is not None:
        choose = combinations_with_replacement if with_replacement else combinations
        table = list(choose(range(size), r))
        if not table:
            return input.new_zeros(0, r if r else 0)
        return input[constant(table, input, torch.int64)]
    if r < 2:
        return input.unsqueeze(1) if r else input.new_zeros(0)
    places = torch.meshgrid(*(torch.arange(input.shape[0], device=input.device),) * r, indexing="ij")
    kept = torch.ones_like(places[0], dtype=torch.bool)
    for one, other in pairwise(places):
        kept = kept & ((one <= other) if with_replacement else (one < other))
    return input[torch.stack([place[kept] for place in places], 1)]
