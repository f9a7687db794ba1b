"""torch.column_stack -> Concat along the second axis.

Source: https://docs.pytorch.org/docs/stable/generated/torch.column_stack.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.column_stack, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def column_stack_to_cat(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins columns; stock TorchScript has no symbolic for it."""
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.cat([x.reshape(-1, 1) if x.dim() < 2 else x for x in tensors], 1)
