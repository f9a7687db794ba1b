"""torch.dstack -> Concat along the third axis.

Source: https://docs.pytorch.org/docs/stable/generated/torch.dstack.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.dstack, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def dstack_to_cat(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins along the third axis; stock TorchScript has no symbolic for it."""
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.cat([_with_three_axes(tensor) for tensor in tensors], 2)


def _with_three_axes(x: Tensor) -> Tensor:
    if x.dim() < 2:
        x = x.reshape(1, -1)
    return x.unsqueeze(2) if x.dim() == 2 else x
