"""Diagonals and triangles of matrices.

Math:   cell (r, c) of a matrix lies on diagonal k if c - r == k, in the lower triangle of k if c - r <= k, and in the
        upper one if c - r >= k. In a row-major matrix of n columns, consecutive cells of a diagonal stand n + 1 cells
        apart.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.tracing import constant, static_size


def size_of(x: Tensor, axis: int) -> Any:
    """Size of an axis of an argument: a plain number if it is fixed, else what the exporter knows it as."""
    size = static_size(x, axis)
    return x.shape[axis] if size is None else size


def diagonal_mask(rows: Any, columns: Any, offset: int, like: Tensor) -> Tensor:
    """True on one diagonal of a (rows, columns) matrix; a constant where both sizes are plain numbers."""
    if type(rows) is int and type(columns) is int:
        return constant(np.eye(rows, columns, offset, dtype=bool), like, torch.bool)
    below = torch.arange(rows, device=like.device).unsqueeze(1) + offset
    return below == torch.arange(columns, device=like.device)


def cells_on_diagonal(rows: int, columns: int, offset: int) -> range:
    """Which cells of a flattened (rows, columns) matrix lie on a diagonal."""
    count = min(rows + min(offset, 0), columns - max(offset, 0))
    first = offset if offset >= 0 else -offset * columns
    return range(first, first + max(count, 0) * (columns + 1), columns + 1)


# Diagonals of matrices


def flat_matrices(op: Ops, x: Value, dim1: int, dim2: int) -> tuple[Value, list[int]]:
    """Matrices, the cells of each in one axis, which is the last; and how the axes were ordered before.

    Args:
        op: Adds the nodes.
        x: (..., rows, ..., columns, ...)
        dim1: The axis of the rows.
        dim2: The axis of the columns.
    """
    rank = op.rank(x)
    if rank is None:
        decline("the rank of the matrices is not known")
    rows, columns = dim1 % rank, dim2 % rank
    perm = [axis for axis in range(rank) if axis not in (rows, columns)] + [rows, columns]
    ordered = x if perm == sorted(perm) else op.Transpose(x, perm=perm)
    return op.Reshape(ordered, [*[0] * (rank - 2), -1]), perm


def cells_in_graph(op: Ops, x: Value, offset: int, dim1: int, dim2: int) -> Value:
    """Which cells of flat matrices lie on a diagonal, an int64 tensor; a constant where both sizes are fixed."""
    shape = op.shape(x)
    if shape is None:
        decline("the rank of the matrices is not known")
    rows, columns = shape[dim1], shape[dim2]
    if rows is not None and columns is not None:
        return op.constant(np.array(cells_on_diagonal(rows, columns, offset), np.int64), torch.int64)

    def number(value: int) -> Value:
        return op.constant(value, torch.int64)

    height, width = (op.Gather(op.Shape(x), number(dim % len(shape)), axis=0) for dim in (dim1, dim2))
    in_rows, in_columns = op.Add(height, number(min(offset, 0))), op.Sub(width, number(max(offset, 0)))
    count = op.Where(op.Less(in_rows, in_columns), in_rows, in_columns)  # Min takes no integers below opset 12
    numbers = op.Range(number(0), op.Where(op.Less(count, number(0)), number(0), count), number(1))
    first = number(offset) if offset >= 0 else op.Mul(width, number(-offset))
    return op.Add(op.Mul(numbers, op.Add(width, number(1))), first)


@symbolic("aten::diagonal", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_of_bool(op: Ops, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Diagonals of any type; the name is older than the other types.

    Stock multiplies the other cells by 0, also NaN and infinity, and sums; TorchScript makes float32 of all types.

    Schema: diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
    Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal.html
    """
    flat, _ = flat_matrices(op, self, dim1, dim2)
    return op.Gather(flat, cells_in_graph(op, self, offset, dim1, dim2), axis=-1)


@symbolic("aten::diagonal_scatter", needed_on=("dynamo",), opset=(16, 99), exactness=Exactness.BITWISE)
def diagonal_scatter(op: Ops, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """What a write to a diagonal is after torch.export; torch's own decomposition of it fails.

    Schema: diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.diagonal_scatter.html
    """
    flat, perm = flat_matrices(op, self, dim1, dim2)
    cells = op.Expand(cells_in_graph(op, self, offset, dim1, dim2), op.Shape(src))
    written = op.ScatterElements(flat, cells, src, axis=-1)
    ordered = perm == sorted(perm)
    shape = op.Shape(self if ordered else op.Transpose(self, perm=perm))
    result = op.Reshape(written, shape)
    return result if ordered else op.Transpose(result, perm=[perm.index(axis) for axis in range(len(perm))])


# Matrices from their diagonals


def diag_embed(x: Tensor, size: Any, offset: int, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis on a diagonal.

    Args:
        x: (..., n)
        size: n, a plain number if it is fixed.
        offset: Which diagonal.
        dim1: Where the rows go, an axis of the result.
        dim2: Where the columns go.
    """
    rank, width = x.dim() + 1, abs(offset)
    first, second = dim1 % rank, dim2 % rank
    if first > second:
        first, second, offset = second, first, -offset
    side = size + width
    padded = nn.functional.pad(x, (0, width)) if width else x
    spread = padded.unsqueeze(-1) if offset >= 0 else padded.unsqueeze(-2)
    mask = diagonal_mask(side, side, offset, x)
    result = mask & spread if x.dtype == torch.bool else torch.where(mask, spread, x.new_zeros(()))
    return result if (first, second) == (rank - 2, rank - 1) else result.movedim((rank - 2, rank - 1), (first, second))


@decomposition(torch.diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_to_where(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix from its diagonal, or the diagonal of a matrix; stock TorchScript has no symbolic for it."""
    if input.dim() == 2:
        return torch.diagonal(input, diagonal)
    return diag_embed(input, size_of(input, -1), diagonal)


@decomposition(torch.diag_embed, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diag_embed_to_where(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last axis on a diagonal; stock TorchScript has no symbolic for it."""
    return diag_embed(input, size_of(input, -1), offset, dim1, dim2)


@decomposition(torch.diagflat, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def diagflat_to_where(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal; stock TorchScript has no symbolic for it."""
    sizes: list[Any] = [static_size(input, axis) for axis in range(input.dim())]
    flat = input.reshape(-1)
    return diag_embed(flat, flat.shape[0] if None in sizes else prod(sizes), offset)


@decomposition(torch.block_diag, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def block_diag_to_cat(*tensors: Tensor) -> Tensor:
    """Blocks along the diagonal; stock TorchScript has no symbolic for it.

    Math: the rows of a block are padded with zeros, as wide as the blocks before and the blocks after it.
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


# Diagonals of matrices


@decomposition(torch.diagonal, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_to_slice(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Diagonals of matrices as a view; stock fails on writes to them.

    Other axes, sizes that vary and matrices that do not lie in memory row by row are left to torch.
    """
    rank = input.dim()
    rows, columns = static_size(input, dim1), static_size(input, dim2)
    if (dim1 % rank, dim2 % rank) != (rank - 2, rank - 1) or rows is None or columns is None:
        return NotImplemented
    cells = cells_on_diagonal(rows, columns, offset)
    if not cells or not input.is_contiguous():
        return NotImplemented
    return input.flatten(-2)[..., cells[0] : cells[-1] + 1 : cells.step]


@decomposition(torch.linalg.diagonal, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def linalg_diagonal_to_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """Diagonals of matrices; stock TorchScript has no symbolic for it."""
    rows, columns = static_size(A, dim1), static_size(A, dim2)
    if rows is None or columns is None:
        return torch.diagonal(A, offset, dim1, dim2)
    cells = constant(cells_on_diagonal(rows, columns, offset), A, torch.int64)
    return A.movedim((dim1, dim2), (-2, -1)).flatten(-2).index_select(-1, cells)


@decomposition(torch.trace, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def trace_to_sum(input: Tensor) -> Tensor:
    """Sum of a diagonal; stock TorchScript lacks it, dynamo multiplies the other cells by 0, also NaN and infinity."""
    mask = diagonal_mask(size_of(input, 0), size_of(input, 1), 0, input)
    return torch.where(mask, input, torch.zeros((), dtype=input.dtype, device=input.device)).sum()


# Writes to a diagonal


@decomposition(torch.diagonal_scatter, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def diagonal_scatter_to_where(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with one diagonal exchanged; stock TorchScript has none, stock dynamo fails."""
    first, second = dim1 % input.dim(), dim2 % input.dim()
    axes = [axis for axis in range(input.dim()) if axis not in (first, second)] + [first, second]
    rows, columns = size_of(input, first), size_of(input, second)
    # A row with a cell on the diagonal reads the cell of src that belongs there. The mask hides what other rows read.
    if type(rows) is int:
        place = constant(np.arange(rows) + min(offset, 0), src, torch.int64)
    else:
        place = torch.arange(rows, device=input.device) + min(offset, 0)
    cells = static_size(src, -1)
    if not cells:  # there may be none: a cell that is never read
        src = torch.cat((src, src.new_zeros((*src.shape[:-1], 1))), -1)
    last = torch.full_like(place, src.shape[-1] - 1)
    spread = src.index_select(src.dim() - 1, place.clamp(min=0).minimum(last)).unsqueeze(-1)
    written = torch.where(diagonal_mask(rows, columns, offset, input), spread, input.permute(axes))
    return written.permute([axes.index(axis) for axis in range(input.dim())])


@decomposition(Tensor.fill_diagonal_, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fill_diagonal_to_where(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number on the diagonal of a matrix, in place; stock TorchScript has none.

    Declines: more than two axes, and wrap=True of a matrix whose sizes vary.
    """
    if self.dim() != 2:
        decline(f"the tensor must have two axes, got {self.dim()}")
    rows, columns = size_of(self, 0), size_of(self, 1)
    if wrap and not (type(rows) is int and type(columns) is int):
        decline("wrap=True needs fixed sizes")
    mask = diagonal_mask(rows, columns, 0, self)
    for start in range(columns + 1, rows, columns + 1) if wrap else ():
        mask = mask | diagonal_mask(rows, columns, -start, self)
    return self.masked_fill_(mask, fill_value)


# Indices of triangles. Stock dynamo and TorchScript fail on sizes that vary; fixed ones need no entry.


def triangle_indices(
    relation: Callable[[Tensor, Tensor], Tensor], row: Any, col: Any, offset: int, options: dict[str, Any]
) -> Tensor:
    """Rows and columns of the cells (r, c) for which the relation holds between c and r + offset, (2, cells)."""
    if type(row) is int and type(col) is int:
        return NotImplemented
    device = options.get("device")
    rows, columns = torch.arange(row, device=device).unsqueeze(1) + offset, torch.arange(col, device=device)
    cells = torch.nonzero(relation(columns, rows)).t()
    return cells.to(options["dtype"]) if options.get("dtype") is not None else cells


@decomposition(torch.tril_indices, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def tril_indices_to_nonzero(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the lower triangle, of sizes that vary."""
    return triangle_indices(torch.le, row, col, offset, options)


@decomposition(torch.triu_indices, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def triu_indices_to_nonzero(row: Any, col: Any, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the upper triangle, of sizes that vary."""
    return triangle_indices(torch.ge, row, col, offset, options)
