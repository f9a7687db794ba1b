"""torch.diag -> Where on a diagonal mask, or the diagonal.

Math:   torch_onnx_compat.functional.diagonals
Source: https://docs.pytorch.org/docs/stable/generated/torch.diag.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.diagonals import diag_embed
from torch_onnx_compat.tracing import static_size


@rewrite(torch.diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_to_where(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix from its diagonal, or the diagonal of a matrix; stock TorchScript has no symbolic for it."""
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    if input.dim() == 2:
        return torch.diagonal(input, diagonal)
    return diag_embed(input, diagonal, -2, -1, static_size(input, -1))
