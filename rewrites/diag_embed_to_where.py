"""torch.diag_embed -> Where on a diagonal mask.

Math:   torch_onnx_compat.functional.diagonals
Source: https://docs.pytorch.org/docs/stable/generated/torch.diag_embed.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.diagonals import diag_embed
from torch_onnx_compat.tracing import static_size


@rewrite(torch.diag_embed, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_embed_to_where(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis on a diagonal; stock TorchScript has no symbolic for it."""
    return diag_embed(input, offset, dim1, dim2, static_size(input, -1))
