"""torch.linalg.diagonal -> torch.diagonal, which both exporters know.

Math:   the same function, whose matrices are the last two axes.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.diagonal.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.linalg.diagonal, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def linalg_diagonal_to_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """Diagonals of matrices; stock TorchScript has no symbolic for it."""
    return torch.diagonal(A, offset, dim1, dim2)
