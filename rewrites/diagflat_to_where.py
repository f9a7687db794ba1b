"""torch.diagflat -> Where on a diagonal mask.

Math:   torch_onnx_compat.functional.diagonals
Source: https://docs.pytorch.org/docs/stable/generated/torch.diagflat.html
"""

from math import prod

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.diagonals import diag_embed
from torch_onnx_compat.tracing import static_size


@rewrite(torch.diagflat, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diagflat_to_where(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal; stock TorchScript has no symbolic for it."""
    sizes = [static_size(input, dim) for dim in range(input.dim())]
    total = None if None in sizes else prod(size for size in sizes if size is not None)
    return diag_embed(input.reshape(-1), offset, -2, -1, total)
