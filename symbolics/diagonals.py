"""Diagonals and triangles of matrices.

Diagonals as masks.

Math:   cell (r, c) of a matrix lies on diagonal k if and only if c - r == k.
Source: https://docs.pytorch.org/docs/stable/generated/torch.diag_embed.html
"""

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, static_size


def diagonal_mask(rows: Any, columns: Any, offset: int, like: Tensor) -> Tensor:
    """True on one diagonal of a (rows, columns) matrix; a constant where both sizes are plain numbers."""
    if type(rows) is int and type(columns) is int:
        return constant(np.eye(rows, columns, offset, dtype=bool), like, torch.bool)
    below = torch.arange(rows, device=like.device).unsqueeze(1) + offset
    return below == torch.arange(columns, device=like.device)


def diag_embed(x: Tensor, offset: int, dim1: int, dim2: int, size: int | None) -> Tensor:
    """Square matrices with the last axis on a diagonal.

    Args:
        x: (..., n)
        offset: Which diagonal.
        dim1: Where the rows go, an axis of the result.
        dim2: Where the columns go.
        size: n if it is fixed.
    """
    rank, width = x.dim() + 1, abs(offset)
    first, second = dim1 % rank, dim2 % rank
    if first > second:
        first, second, offset = second, first, -offset
    side = x.shape[-1] + width if size is None else size + width
    padded = x
    if width:
        padded = nn.functional.pad(x, (0, width))
    spread = padded.unsqueeze(-1) if offset >= 0 else padded.unsqueeze(-2)
    mask = diagonal_mask(side, side, offset, x)
    result = mask & spread if x.dtype == torch.bool else torch.where(mask, spread, x.new_zeros(()))
    return result if (first, second) == (rank - 2, rank - 1) else result.movedim((rank - 2, rank - 1), (first, second))


def diagonal_scatter(x: Tensor, src: Tensor, offset: int, dim1: int, dim2: int, sizes: list[int | None]) -> Tensor:
    """The tensor with a diagonal exchanged.

    Args:
        x: Any tensor of two or more axes.
        src: The diagonal, (..., n).
        offset: Which diagonal.
        dim1: Axis of the rows.
        dim2: Axis of the columns.
        sizes: Sizes of x, None where they vary.
    """
    first, second = dim1 % x.dim(), dim2 % x.dim()
    axes = [axis for axis in range(x.dim()) if axis not in (first, second)] + [first, second]
    rows: Any
    columns: Any
    rows, columns = (x.shape[axis] if sizes[axis] is None else sizes[axis] for axis in (first, second))
    # Each row with a cell on the diagonal takes the src of that cell; what the others take is masked out.
    length = src.shape[-1] - 1
    if type(rows) is int:
        table = np.arange(rows) + min(offset, 0)
        place = constant(table, src, torch.int64)
    else:
        place = torch.arange(rows, device=x.device) + min(offset, 0)
    spread = src.index_select(src.dim() - 1, place.clamp(min=0).minimum(torch.full_like(place, length))).unsqueeze(-1)
    written = torch.where(diagonal_mask(rows, columns, offset, x), spread, x.permute(axes))
    return written.permute([axes.index(axis) for axis in range(x.dim())])


@decomposition(torch.diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_to_where(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix from its diagonal, or the diagonal of a matrix; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.diag.html
    """
    if out is not None:
        return NotImplemented
    if input.dim() == 2:
        return torch.diagonal(input, diagonal)
    return diag_embed(input, diagonal, -2, -1, static_size(input, -1))


@decomposition(torch.diag_embed, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_embed_to_where(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis on a diagonal; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.diag_embed.html
    """
    return diag_embed(input, offset, dim1, dim2, static_size(input, -1))


@decomposition(torch.diagflat, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diagflat_to_where(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.diagflat.html
    """
    sizes = [static_size(input, dim) for dim in range(input.dim())]
    total = None if None in sizes else prod(size for size in sizes if size is not None)
    return diag_embed(input.reshape(-1), offset, -2, -1, total)


@decomposition(torch.block_diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def block_diag_to_cat(*tensors: Tensor) -> Tensor:
    """Blocks along the diagonal; stock TorchScript has no symbolic for it.

    Math: the rows of a block are it, between zeros as wide as the blocks before and after.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.block_diag.html
    """
    blocks = [torch.atleast_2d(tensor) for tensor in tensors]
    dtype = blocks[0].dtype
    for block in blocks:
        dtype = torch.promote_types(dtype, block.dtype)
    widths = [block.shape[1] for block in blocks]
    rows = [
        nn.functional.pad(block.to(dtype), (sum(widths[:number]), sum(widths[number + 1 :])))
        for number, block in enumerate(blocks)
    ]
    return torch.cat(rows, 0)


@decomposition(torch.diagonal, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_to_slice(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Views the diagonals of matrices; stock fails on writes to them.

    Other axes, sizes that vary and matrices that do not lie in memory row by row are left to torch.

    Math: in a row-major matrix of n columns, consecutive cells of a diagonal stand n + 1 cells apart.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal.html
    """
    rank = input.dim()
    rows, columns = static_size(input, dim1), static_size(input, dim2)
    if (dim1 % rank, dim2 % rank) != (rank - 2, rank - 1) or rows is None or columns is None:
        return NotImplemented
    first = offset if offset >= 0 else -offset * columns
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if count < 1 or not input.is_contiguous():
        return NotImplemented
    return input.flatten(-2)[..., first : first + (count - 1) * (columns + 1) + 1 : columns + 1]


@decomposition(torch.linalg.diagonal, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def linalg_diagonal_to_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """Diagonals of matrices; stock TorchScript has no symbolic for it.

    Math: element i of diagonal k stands in row i, column i + k; in place i * (columns + 1) + k of the flattened matrix.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.diagonal.html
    """
    rows, columns = static_size(A, dim1), static_size(A, dim2)
    if rows is None or columns is None:
        return torch.diagonal(A, offset, dim1, dim2)
    first = -offset * columns if offset < 0 else offset
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    places = constant([first + i * (columns + 1) for i in range(count)], A, torch.int64)
    return A.movedim((dim1, dim2), (-2, -1)).flatten(-2).index_select(-1, places)


@decomposition(torch.diagonal_scatter, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_scatter_to_where(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with one diagonal exchanged; stock TorchScript has none, stock dynamo fails.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal_scatter.html
    """
    sizes = [static_size(input, dim) for dim in range(input.dim())]
    return diagonal_scatter(input, src, offset, dim1, dim2, sizes)


@decomposition(Tensor.fill_diagonal_, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fill_diagonal_to_where(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number on the diagonal of a matrix, in place; stock TorchScript has none.

    Declines: more than two axes, and wrap=True of a matrix that may be tall.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.fill_diagonal_.html
    """
    if self.dim() != 2:
        decline(f"the tensor must have two axes, got {self.dim()}")
    fixed = static_size(self, 0), static_size(self, 1)
    rows, columns = (self.shape[dim] if size is None else size for dim, size in enumerate(fixed))
    mask = diagonal_mask(rows, columns, 0, self)
    if wrap and None in fixed:
        decline("wrap=True needs fixed sizes")
    if wrap:
        for start in range(columns + 1, rows, columns + 1):
            mask = mask | diagonal_mask(rows, columns, -start, self)
    return self.masked_fill_(mask, fill_value)


@decomposition(torch.trace, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def trace_to_sum(input: Tensor) -> Tensor:
    """Sum of a diagonal; stock TorchScript lacks it, dynamo multiplies what lies beside it by 0, NaN or not.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.trace.html
    """
    rows, columns = (static_size(input, axis) for axis in (0, 1))
    mask = diagonal_mask(
        input.shape[0] if rows is None else rows, input.shape[1] if columns is None else columns, 0, input
    )
    return torch.where(mask, input, torch.zeros((), dtype=input.dtype, device=input.device)).sum()


@decomposition(torch.tril_indices, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def tril_indices_to_nonzero(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the lower triangle; both exporters fail on sizes that vary, fixed ones need no entry.

    Math: cell (r, c) belongs to the lower triangle if and only if c <= r + offset.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.tril_indices.html
    """
    if type(row) is int and type(col) is int:
        return NotImplemented
    device = options.get("device")
    rows, columns = torch.arange(row, device=device).unsqueeze(1) + offset, torch.arange(col, device=device)
    places = torch.nonzero(columns <= rows).t()
    return places.to(options["dtype"]) if options.get("dtype") is not None else places


@decomposition(torch.triu_indices, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def triu_indices_to_nonzero(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the upper triangle; both exporters fail on sizes that vary, fixed ones need no entry.

    Math: cell (r, c) belongs to the upper triangle if and only if c >= r + offset.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.triu_indices.html
    """
    if type(row) is int and type(col) is int:
        return NotImplemented
    device = options.get("device")
    rows, columns = torch.arange(row, device=device).unsqueeze(1) + offset, torch.arange(col, device=device)
    places = torch.nonzero(columns >= rows).t()
    return places.to(options["dtype"]) if options.get("dtype") is not None else places
