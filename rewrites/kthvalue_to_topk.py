"""torch.kthvalue -> the last of the k smallest values.

Math:   the k smallest in ascending order end with the k-th.
Source: https://docs.pytorch.org/docs/stable/generated/torch.kthvalue.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.kthvalue, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def kthvalue_to_topk(
    input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Value of rank k with its index; neither exporter has an operator for it. Of equal cells torch names any.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got two tensors")
    if input.dim() == 0:
        values, indices = input.clone(), torch.zeros_like(input, dtype=torch.int64)
    else:
        values, indices = (found.narrow(dim, k - 1, 1) for found in torch.topk(input, k, dim, largest=False))
        if not keepdim:
            values, indices = values.squeeze(dim), indices.squeeze(dim)
    result: tuple[Tensor, Tensor] = torch.return_types.kthvalue((values, indices))
    return result
