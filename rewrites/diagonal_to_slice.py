"""torch.diagonal of the last two axes -> a slice of them flattened.

Math:   in a row-major matrix of n columns, consecutive cells of a diagonal stand n + 1 cells apart.
Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.diagonal, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_to_slice(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Views the diagonals of matrices; stock fails on writes to them.

    Other axes, sizes that vary and matrices that do not lie in memory row by row are left to torch.
    """
    rank = input.dim()
    rows, columns = static_size(input, dim1), static_size(input, dim2)
    if (dim1 % rank, dim2 % rank) != (rank - 2, rank - 1) or rows is None or columns is None:
        return NotImplemented  # type: ignore[no-any-return]
    first = offset if offset >= 0 else -offset * columns
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if count < 1 or not input.is_contiguous():
        return NotImplemented  # type: ignore[no-any-return]
    return input.flatten(-2)[..., first : first + (count - 1) * (columns + 1) + 1 : columns + 1]
