"""torch.bucketize -> the number of smaller boundaries.

Math:   torch_onnx_compat.functional.searching.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bucketize.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.searching import COUNT_LIMIT, positions
from torch_onnx_compat.tracing import static_size


@rewrite(torch.bucketize, always=True, exactness=Exactness.BITWISE)
def bucketize_to_sum(
    input: Tensor | float,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Number of the bucket of each value; stock takes twice to fourteen times the nodes.

    Declines: out=, and boundaries that are not few and fixed, for which stock dynamo's binary search is the faster.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    size = static_size(boundaries, 0)
    if size is None or size > COUNT_LIMIT:
        decline(f"at most {COUNT_LIMIT} boundaries are compared one by one, got {size or 'a varying number'}")
    values = input if isinstance(input, Tensor) else torch.full((), input, dtype=boundaries.dtype)
    found = positions(boundaries, values, size, right=right)
    return found.to(torch.int32) if out_int32 else found
