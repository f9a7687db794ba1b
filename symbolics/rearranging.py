"""Rearranging: flips, rolls, splits, stacks, repeats, transposes.

Splitting an axis into slices, one node each.

Source: https://docs.pytorch.org/docs/stable/generated/torch.tensor_split.html
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.tracing import static_size


def split_axis(x: Tensor, places: Any, dim: int) -> tuple[Tensor, ...]:
    """Parts of an axis between places, or that many equal parts.

    Args:
        x: One of the arguments of the rewrite that runs.
        places: Where the parts end, or their number.
        dim: Axis, from 0.
    """
    if isinstance(places, int):
        size = static_size(x, dim)
        if size is None:
            return torch.tensor_split(x, places, dim=dim)
        places = range(size // places, size, size // places)
    bounds = pairwise((0, *places, None))
    return tuple(x[(slice(None),) * dim + (slice(start, end),)] for start, end in bounds)


@decomposition(torch.fliplr, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def fliplr_to_flip(input: Tensor) -> Tensor:
    """Reverses columns; stock TorchScript has no symbolic for it.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fliplr.html
    """
    return torch.flip(input, (1,))


@decomposition(torch.flipud, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def flipud_to_flip(input: Tensor) -> Tensor:
    """Reverses rows; stock TorchScript has no symbolic for it.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.flipud.html
    """
    return torch.flip(input, (0,))


@decomposition(torch.rot90, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def rot90_to_flip(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turns a plane by k quarters; stock TorchScript has no symbolic for it.

    Math: a quarter turn from the first axis towards the second is the flip of the second, then their exchange; half a
          turn is the flip of both.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.rot90.html
    """
    first, second = dims
    quarters = k % 4
    if quarters == 0:
        return input.clone()
    if quarters == 2:
        return input.flip(first, second)
    return input.flip(second if quarters == 1 else first).transpose(first, second)


@decomposition(torch.roll, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def roll_to_slices(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Rolls one axis after the other, or the flattened tensor where no axis is named.

    TorchScript refuses dims=None, errs on shifts beyond the size and freezes those computed from sizes; dynamo refuses
    these last, and its file fails on an empty axis.

    Math: rolling by s along an axis of n cells puts cell (-s mod n) first, so y = cat(x[first:], x[:first]).
    Source: https://pytorch.org/docs/stable/generated/torch.roll.html
    """
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = () if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
    sizes = [static_size(input, dim) for dim in dims or range(input.dim())]
    if not dims:
        flat = input.reshape(-1)
        total = flat.shape[0] if None in sizes else prod(size for size in sizes if size is not None)
        return _rolled(flat, shifts[0], 0, total).reshape(input.shape)
    output = input
    for shift, dim, size in zip(shifts, dims, sizes, strict=True):
        output = _rolled(output, shift, dim, input.shape[dim] if size is None else size)
    return output


def _rolled(x: Tensor, shift: int, dim: int, size: int) -> Tensor:
    if isinstance(shift, int) and isinstance(size, int) and (size == 0 or shift % size == 0):
        return x.clone()  # the result is never the argument itself, which a later operation may change in place
    # 1 // (size + 1) is 1 for an axis that is empty at run time, else 0: nothing is divided by 0.
    first = -shift % (size + 1 // (size + 1))
    return torch.cat((x.narrow(dim, first, size - first), x.narrow(dim, 0, first)), dim)


@decomposition((torch.movedim, torch.moveaxis), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def movedim_to_permute(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves axes; stock TorchScript writes negative axes into the file as they are.

    Math: the named axes go to their places, the others fill the rest in their order.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.movedim.html
    """
    sources = (source,) if isinstance(source, int) else tuple(source)
    destinations = (destination,) if isinstance(destination, int) else tuple(destination)
    rank = input.dim()
    if all(axis >= 0 for axis in (*sources, *destinations)):
        return NotImplemented
    placed = {to % rank: axis % rank for axis, to in zip(sources, destinations, strict=True)}
    others = (axis for axis in range(rank) if axis not in placed.values())
    return input.permute([placed[place] if place in placed else next(others) for place in range(rank)])


@symbolic("aten::mT", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def mT(op: Ops, self: Value) -> Value:
    """Transposed matrices; stock TorchScript has no symbolic for the attribute.

    Declines: a tensor of unknown rank.

    Math: the last two axes change places.
    Schema: mT(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mT
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])


@symbolic("aten::mH", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def mH(op: Ops, self: Value) -> Value:
    """Adjoint matrices, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.

    Math: the last two axes change places; a real number is its own conjugate.
    Schema: mH(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mH
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])


@symbolic("aten::matrix_H", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def matrix_H(op: Ops, self: Value) -> Value:
    """Adjoint matrix, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.

    Math: the last two axes change places; a real number is its own conjugate.
    Schema: matrix_H(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.H
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])


@decomposition(torch.hsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def hsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 1, or 0 of a vector; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.hsplit.html
    """
    return split_axis(input, indices_or_sections, 1 if input.dim() > 1 else 0)


@decomposition(torch.vsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def vsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 0; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.vsplit.html
    """
    return split_axis(input, indices_or_sections, 0)


@decomposition(torch.dsplit, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def dsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 2; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.dsplit.html
    """
    return split_axis(input, indices_or_sections, 2)


@decomposition(torch.chunk, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def chunk_of_quantized(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of a tensor of one scale, which stock TorchScript takes apart as if it were its integers alone.

    Math: rounding to a step gives a number that is one back.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.chunk.html
    """
    if not input.is_quantized or input.qscheme() is not torch.per_tensor_affine:
        return NotImplemented
    pieces = input.dequantize().chunk(chunks, dim)
    return tuple(
        torch.quantize_per_tensor(piece, input.q_scale(), input.q_zero_point(), input.dtype) for piece in pieces
    )


@decomposition(torch.column_stack, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def column_stack_to_cat(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins columns; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.column_stack.html
    """
    if out is not None:
        return NotImplemented
    return torch.cat([x.reshape(-1, 1) if x.dim() < 2 else x for x in tensors], 1)


@decomposition(torch.dstack, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def dstack_to_cat(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins along the third axis; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.dstack.html
    """
    if out is not None:
        return NotImplemented
    return torch.cat([_with_three_axes(tensor) for tensor in tensors], 2)


def _with_three_axes(x: Tensor) -> Tensor:
    if x.dim() < 2:
        x = x.reshape(1, -1)
    return x.unsqueeze(2) if x.dim() == 2 else x


@decomposition(torch.stack, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def stack_promoted(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins along a new axis; stock dynamo leaves the types as they are, which Concat does not take.

    Math: torch's promotion rules.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.stack.html
    """
    types = [tensor.dtype for tensor in tensors]
    if out is not None or len(set(types)) <= 1:
        return NotImplemented
    common = reduce(torch.promote_types, types)
    return torch.stack([tensor.to(common) for tensor in tensors], dim)


@decomposition(Tensor.repeat, avoids=("Tile",), exactness=Exactness.BITWISE)
def repeat_to_expand(input: Tensor, *repeats: Any) -> Tensor:
    """Repeats a tensor along its axes, new ones in front among them.

    Declines: an axis of several cells, or of a size that is not fixed, unless it is repeated once.

    Math: n repeats of an axis of one cell are that axis expanded to n.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html
    """
    times = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
    new = len(times) - input.dim()
    sizes: list[Any] = []
    for axis, number in enumerate(times):
        size = 1 if axis < new else static_size(input, axis - new)
        if type(number) is int and number == 1:
            sizes.append(input.shape[axis - new] if size is None else size)
        elif size == 1:
            sizes.append(number)
        else:
            decline(f"axis {axis} must have one cell, which expand repeats; got {size or 'a size that varies'}")
    return input.expand(sizes).clone()  # a repeat may be written to


@decomposition(torch.repeat_interleave, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def repeat_interleave_by_size(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats the cells of an axis; stock dynamo errs on dynamic numbers, and fails on 0 and on output_size.

    Math: repeating each cell r times is a new axis of r equal cells, flattened into the one before it. The output_size
          only spares torch a look at the numbers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
    """
    if repeats is None or isinstance(repeats, Tensor):
        if output_size is None:
            return NotImplemented
        return torch.repeat_interleave(input) if repeats is None else torch.repeat_interleave(input, repeats, dim)
    if type(repeats) is int and repeats:
        return NotImplemented
    x, axis = (input.flatten(), 0) if dim is None else (input, dim % input.dim())
    if type(repeats) is int:
        return x.narrow(axis, 0, 0)
    shape = [*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]]
    return x.unsqueeze(axis + 1).expand(shape).flatten(axis, axis + 1)


@decomposition(torch.repeat_interleave, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def repeat_interleave_to_nonzero(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats each cell of an axis its own number of times; stock TorchScript errs on constants, and writes loops.

    Math: row i of the table (n, largest number) begins with as many trues as cell i is repeated; its nonzero entries,
          row by row, name the cells of the result.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
    """
    if repeats is None:
        return _cells(input)
    if not isinstance(repeats, Tensor) or repeats.dim() == 0 or static_size(repeats, 0) == 1:
        return NotImplemented
    x, axis = (input.flatten(), 0) if dim is None else (input, dim)
    return x.index_select(axis, _cells(repeats))


def _cells(repeats: Tensor) -> Tensor:
    longest: Any = torch.cat((repeats, repeats.new_zeros(1))).amax()  # amax of nothing is an error
    table = torch.arange(longest, device=repeats.device) < repeats.unsqueeze(1)
    return table.nonzero()[:, 0]
