"""torch.unique_consecutive -> the cells that differ from the one before.

Math:   a run begins where a cell differs from the one before; the number of beginnings so far is the run's number, the
        distance to the next one its length.
Source: https://docs.pytorch.org/docs/stable/generated/torch.unique_consecutive.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import size_tensor


@rewrite(torch.unique_consecutive, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def unique_consecutive_to_mask(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Drops repeated neighbours; neither exporter takes it."""
    x = input.reshape(-1) if dim is None else input.transpose(dim, 0)
    rows = x.reshape(x.shape[0], -1)
    differs = (rows[1:] != rows[:-1]).any(1)
    begins = torch.cat((torch.ones_like(rows[:1, 0], dtype=torch.bool), differs))
    found = x[begins]
    results = [found if dim is None else found.transpose(dim, 0)]
    if return_inverse:
        number = begins.to(torch.int64).cumsum(0) - 1
        results.append(number.reshape(input.shape) if dim is None else number)
    if return_counts:
        first = begins.nonzero().squeeze(1)
        results.append(torch.cat((first[1:], size_tensor(x, 0).reshape(1))) - first)
    return tuple(results) if len(results) > 1 else results[0]
