"""torch.diff -> neighbours subtracted, n times.

Math:   y[i] = x[i + 1] - x[i]; of booleans, whether they differ.
Source: https://docs.pytorch.org/docs/stable/generated/torch.diff.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.diff, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diff_to_slices(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours; stock TorchScript has no symbolic for it.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")

    parts = [part for part in (prepend, input, append) if part is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        ahead, behind = x.narrow(dim, 1, x.shape[dim] - 1), x.narrow(dim, 0, x.shape[dim] - 1)
        x = ahead != behind if x.dtype == torch.bool else ahead - behind
    return x.clone() if x is input else x
