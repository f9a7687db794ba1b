"""torch.diagonal_scatter -> Where on a diagonal mask.

Math:   torch_onnx_compat.functional.diagonals
Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal_scatter.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.diagonals import diagonal_scatter
from torch_onnx_compat.tracing import static_size


@rewrite(torch.diagonal_scatter, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_scatter_to_where(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with one diagonal exchanged; stock TorchScript has none, stock dynamo fails."""
    sizes = [static_size(input, dim) for dim in range(input.dim())]
    return diagonal_scatter(input, src, offset, dim1, dim2, sizes)
