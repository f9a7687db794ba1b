"""torch.pdist -> norms of the differences of the pairs.

Math:   torch_onnx_compat.functional.distances, for the pairs i < j in the order of i.
Source: https://docs.pytorch.org/docs/stable/generated/torch.pdist.html
"""

from itertools import combinations

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.distances import norm
from torch_onnx_compat.tracing import constant, is_tracing, static_size


@rewrite((torch.pdist, torch.nn.functional.pdist), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def pdist_to_norm(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of a fixed number of points; neither exporter has an operator for it.

    Declines: a varying number of points.
    """
    points = input.shape[0] if not is_tracing() else static_size(input, 0)
    if type(points) is not int:
        decline("the number of points must be fixed; take the upper triangle of torch.cdist(x, x) instead")
    first, second = (
        constant(numbers, input, torch.int64) for numbers in zip(*combinations(range(points), 2), strict=True)
    )
    return norm(input.index_select(0, first) - input.index_select(0, second), p)
