"""torch.linalg.diagonal -> Gather from flattened matrices, or torch.diagonal, which both exporters know.

Math:   element i of diagonal k stands in row i, column i + k; in place i * (columns + 1) + k of the flattened matrix.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.diagonal.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import constant, static_size


@rewrite(torch.linalg.diagonal, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def linalg_diagonal_to_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """Diagonals of matrices; stock TorchScript has no symbolic for it."""
    rows, columns = static_size(A, dim1), static_size(A, dim2)
    if rows is None or columns is None:
        return torch.diagonal(A, offset, dim1, dim2)
    first = -offset * columns if offset < 0 else offset
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = constant([first + i * (columns + 1) for i in range(count)], A, torch.int64)
    return A.movedim((dim1, dim2), (-2, -1)).flatten(-2).index_select(-1, places)
