"""Rearranging: flips, rolls, transposes, splits, stacks, repeats."""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.tracing import extreme_of_sizes, is_of_data, is_tracing, static_size

ON_TORCHSCRIPT = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
OF_NOTHING = Declaration(needed_on=("torchscript",), opset=(14, 99), exactness=Exactness.BITWISE)
ON_DYNAMO = Declaration(needed_on=("dynamo",), exactness=Exactness.BITWISE)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The members of a list, or the one value."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


# Shapes


@decomposition(torch.ravel, **ON_TORCHSCRIPT)
def ravel_to_reshape(input: Tensor) -> Tensor:
    """All cells in one row; stock TorchScript has no symbolic for it."""
    return input.reshape(-1)


@decomposition(torch.squeeze, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def squeeze_of_larger_axes(input: Tensor, dim: Any = None) -> Tensor:
    """Leaves axes in place that are larger than 1, as torch does; stock dynamo's file fails on them.

    And squeezes one axis after another, as stock TorchScript cannot squeeze several. An axis that varies is left to
    TorchScript, which asks for its size in the file.
    """
    if dim is None or not input.dim():
        return NotImplemented
    axes = sorted({axis % input.dim() for axis in as_tuple(dim)})
    sizes = {axis: static_size(input, axis) if is_tracing() else input.size(axis) for axis in axes}
    if any(is_of_data(size) for size in sizes.values()):
        return NotImplemented  # nobody may ask for it
    single = [axis for axis, size in sizes.items() if size is None or size == 1]
    if single == axes and len(axes) == 1:
        return NotImplemented
    result = input[...]
    for axis in reversed(single):
        result = torch.squeeze(result, axis)
    return result


@decomposition((torch.tile, Tensor.tile), **ON_TORCHSCRIPT)
def tile_to_repeat(input: Tensor, *dims: Any) -> Tensor:
    """Copies beside one another; stock TorchScript writes an If for the number of axes, which onnxruntime refuses."""
    times = as_tuple(dims[0]) if len(dims) == 1 else dims
    return input.repeat(*[1] * (input.dim() - len(times)), *times)


@decomposition((torch.unflatten, Tensor.unflatten), **ON_TORCHSCRIPT)
def unflatten_to_reshape(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """An axis taken apart; stock TorchScript keeps the result's shape for later nodes as it is on the example.

    Declines: named axes.
    """
    if not isinstance(dim, int):
        decline("axes are given by number")
    axis = dim % max(input.dim(), 1)
    return input.reshape(*input.shape[:axis], *sizes, *input.shape[axis + 1 :])


@symbolic("aten::view", **OF_NOTHING)
def view_of_nothing(op: Ops, self: Value, size: list[int]) -> Value:
    """An empty tensor in another shape; stock TorchScript's Reshape takes a size of 0 for the input's size there.

    Schema: view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    Source: https://onnx.ai/onnx/operators/onnx__Reshape.html, allowzero
    """
    return op.Reshape(self, size, allowzero=1) if op.result_is_empty() else NotImplemented


@symbolic("aten::reshape", **OF_NOTHING)
def reshape_of_nothing(op: Ops, self: Value, shape: list[int]) -> Value:
    """An empty tensor in another shape; stock TorchScript's Reshape takes a size of 0 for the input's size there.

    Schema: reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)
    Source: https://onnx.ai/onnx/operators/onnx__Reshape.html, allowzero
    """
    return view_of_nothing(op, self, shape)


@symbolic("aten::pad_sequence", **ON_TORCHSCRIPT)
def pad_sequence(
    op: Ops,
    sequences: list[Value],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Value:
    """Sequences (L_i, *) of several lengths as one tensor (L, B, *), the shorter ones padded; stock has none.

    Schema: pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str
    padding_side="right") -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
    """
    rank = op.rank(sequences[0])
    if rank is None:
        decline("the rank of the sequences must be known")
    dtype = op.dtype(sequences[0])
    lengths = [op.Gather(op.Shape(sequence), op.constant([0], torch.int64), axis=0) for sequence in sequences]
    longest = reduce(op.Max, lengths)
    filler = op.constant(padding_value, dtype)
    rows = []
    for sequence, length in zip(sequences, lengths, strict=True):
        missing, nothing = op.Sub(longest, length), op.constant([0], torch.int64)
        first, last = (missing, nothing) if padding_side == "left" else (nothing, missing)
        others = [op.constant([0] * (rank - 1), torch.int64)] if rank > 1 else []
        padded = op.Pad(sequence, op.Concat(first, *others, last, *others, axis=0), filler)
        rows.append(op.Unsqueeze(padded, [0 if batch_first else 1]))
    return op.Concat(*rows, axis=0 if batch_first else 1)


# Flips and rolls


@decomposition(torch.fliplr, **ON_TORCHSCRIPT)
def fliplr_to_flip(input: Tensor) -> Tensor:
    """Reverses columns; stock TorchScript has no symbolic for it."""
    return torch.flip(input, (1,))


@decomposition(torch.flipud, **ON_TORCHSCRIPT)
def flipud_to_flip(input: Tensor) -> Tensor:
    """Reverses rows; stock TorchScript has no symbolic for it."""
    return torch.flip(input, (0,))


@decomposition(torch.rot90, **ON_TORCHSCRIPT)
def rot90_to_flip(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turns a plane by k quarters; stock TorchScript has no symbolic for it.

    Math: a quarter turn from the first axis towards the second is the flip of the second, then their exchange; half a
          turn is the flip of both.
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

    Math: rolling by s along an axis of n cells puts cell (-s mod n) first, so y = cat(x[first:], x[:first]). Where s
          is a tensor of a capture, y[i] = x[(i - s) mod n]: torch's loops have no slices that vary.
    """
    shifts, dims = as_tuple(shifts), () if dims is None else as_tuple(dims)
    sizes = [static_size(input, dim) for dim in dims or range(input.dim())]
    if not dims:
        flat = input.reshape(-1)
        total = flat.shape[0] if None in sizes else prod(size for size in sizes if size is not None)
        return _roll_axis(flat, shifts[0], 0, total).reshape(input.shape)
    output = input
    for shift, dim, size in zip(shifts, dims, sizes, strict=True):
        output = _roll_axis(output, shift, dim, input.shape[dim] if size is None else size)
    return output


def _roll_axis(x: Tensor, shift: int | Tensor, dim: int, size: int) -> Tensor:
    if isinstance(shift, int) and isinstance(size, int) and (size == 0 or shift % size == 0):
        return x.clone()  # the result is never the argument itself, which a later operation may change in place
    # 1 // (size + 1) is 1 for an axis that is empty at run time, else 0: nothing is divided by 0.
    divisor = size + 1 // (size + 1)
    if isinstance(shift, Tensor) and not is_tracing():
        return x.index_select(dim, torch.remainder(torch.arange(size, device=x.device) - shift, divisor))
    first: Any = -shift % divisor  # a size is a tensor in a trace
    return torch.cat((x.narrow(dim, first, size - first), x.narrow(dim, 0, first)), dim)


# Transposes


@decomposition((torch.movedim, torch.moveaxis), **ON_TORCHSCRIPT)
def movedim_to_permute(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves axes; stock TorchScript writes negative axes into the file as they are.

    Math: the named axes go to their places, the others fill the rest in their order.
    """
    sources, destinations = as_tuple(source), as_tuple(destination)
    if all(axis >= 0 for axis in (*sources, *destinations)):
        return NotImplemented
    rank = input.dim()
    placed = {to % rank: axis % rank for axis, to in zip(sources, destinations, strict=True)}
    others = (axis for axis in range(rank) if axis not in placed.values())
    return input.permute([placed[place] if place in placed else next(others) for place in range(rank)])


def transpose_matrices(op: Ops, x: Value) -> Value:
    """The tensor with its last two axes exchanged.

    Declines: a tensor of unknown rank.
    """
    rank = op.rank(x)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


@symbolic("aten::mT", **ON_TORCHSCRIPT)
def mT(op: Ops, self: Value) -> Value:
    """Transposed matrices; stock TorchScript has no symbolic for the attribute.

    Declines: a tensor of unknown rank.

    Schema: mT(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mT
    """
    return transpose_matrices(op, self)


@symbolic("aten::mH", **ON_TORCHSCRIPT)
def mH(op: Ops, self: Value) -> Value:
    """Adjoint matrices, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.

    Math: a real number is its own conjugate.
    Schema: mH(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mH
    """
    return transpose_matrices(op, self)


@symbolic("aten::matrix_H", **ON_TORCHSCRIPT)
def matrix_H(op: Ops, self: Value) -> Value:
    """Adjoint matrix, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.

    Math: a real number is its own conjugate.
    Schema: matrix_H(Tensor self) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.H
    """
    return transpose_matrices(op, self)


# Splits


def split_axis(x: Tensor, places: Any, dim: int) -> tuple[Tensor, ...]:
    """Parts of an axis between places, or that many equal parts; one Slice each.

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


@decomposition(torch.hsplit, **ON_TORCHSCRIPT)
def hsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 1, or 0 of a vector; stock TorchScript has no symbolic for it."""
    return split_axis(input, indices_or_sections, 1 if input.dim() > 1 else 0)


@decomposition(torch.vsplit, **ON_TORCHSCRIPT)
def vsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 0; stock TorchScript has no symbolic for it."""
    return split_axis(input, indices_or_sections, 0)


@decomposition(torch.dsplit, **ON_TORCHSCRIPT)
def dsplit_to_slices(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Splits axis 2; stock TorchScript has no symbolic for it."""
    return split_axis(input, indices_or_sections, 2)


@decomposition(torch.tensor_split, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def tensor_split_to_slices(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of an axis, some a cell longer; stock fails where the axis varies.

    torch.export fixes how many are longer, and TorchScript's file does not run if a place is computed from a size.

    Math: of n cells in k parts, the first n mod k parts have n div k + 1 cells, the others n div k. The parts before
    number i have i (n div k) + min(i, n mod k) cells together.
    """
    axis = dim % input.dim() if input.dim() else 0
    if isinstance(indices_or_sections, (tuple, list)):
        return split_axis(input, tuple(indices_or_sections), axis)
    if type(indices_or_sections) is not int or indices_or_sections < 1 or not input.dim():
        return NotImplemented
    size, count = input.shape[axis], indices_or_sections
    least, rest = size // count, size % count

    def longer(parts: int) -> Any:
        """How many of the first parts are a cell longer."""
        return rest.clamp(max=parts) if isinstance(rest, Tensor) else extreme_of_sizes(False, parts, rest)

    return split_axis(input, tuple(i * least + longer(i) for i in range(1, count)), axis)


@decomposition(torch.chunk, **ON_TORCHSCRIPT)
def chunk_of_quantized(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of a tensor of one scale, which stock TorchScript takes apart as if it were its integers alone.

    Math: a multiple of the scale is quantized to itself, so the pieces lose nothing.
    """
    if not input.is_quantized or input.qscheme() is not torch.per_tensor_affine:
        return NotImplemented
    pieces = input.dequantize().chunk(chunks, dim)
    return tuple(
        torch.quantize_per_tensor(piece, input.q_scale(), input.q_zero_point(), input.dtype) for piece in pieces
    )


@decomposition(torch.chunk, **ON_TORCHSCRIPT)
def chunk_of_few_cells(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of an axis of fixed size that has fewer of them than asked for, as 5 of 7 columns are 4 pieces.

    Stock TorchScript writes as many as were asked for, and the file does not run.
    """
    size = static_size(input, dim % input.dim()) if type(chunks) is int and input.dim() else None
    if not size or is_of_data(size):
        return NotImplemented
    length = -(-size // chunks)
    if -(-size // length) == chunks:
        return NotImplemented
    return split_axis(input, tuple(range(length, size, length)), dim % input.dim())


# Stacks


@decomposition(torch.column_stack, **ON_TORCHSCRIPT)
def column_stack_to_cat(tensors: Sequence[Tensor]) -> Tensor:
    """Joins columns; stock TorchScript has no symbolic for it."""
    return torch.cat([x.reshape(-1, 1) if x.dim() < 2 else x for x in tensors], 1)


@decomposition(torch.dstack, **ON_TORCHSCRIPT)
def dstack_to_cat(tensors: Sequence[Tensor]) -> Tensor:
    """Joins along the third axis; stock TorchScript has no symbolic for it."""
    return torch.cat([_with_three_axes(tensor) for tensor in tensors], 2)


def _with_three_axes(x: Tensor) -> Tensor:
    if x.dim() < 2:
        x = x.reshape(1, -1)
    return x.unsqueeze(2) if x.dim() == 2 else x


@decomposition(torch.stack, **ON_DYNAMO)
def stack_promoted(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins along a new axis; stock dynamo leaves the types as they are, which Concat does not take.

    Math: torch's promotion rules.
    """
    types = [tensor.dtype for tensor in tensors]
    if len(set(types)) <= 1:
        return NotImplemented
    common = reduce(torch.promote_types, types)
    return torch.stack([tensor.to(common) for tensor in tensors], dim)


# Repeats


@decomposition(Tensor.repeat, avoids=("Tile",), exactness=Exactness.BITWISE)
def repeat_to_expand(input: Tensor, *repeats: Any) -> Tensor:
    """Repeats a tensor along its axes, new ones in front among them.

    Declines: an axis of several cells, or of a size that is not fixed, unless it is repeated once.

    Math: n repeats of an axis of one cell are that axis expanded to n.
    """
    times = as_tuple(repeats[0]) if len(repeats) == 1 else repeats
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


@decomposition(torch.repeat_interleave, **ON_DYNAMO)
def repeat_interleave_by_size(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats the cells of an axis; stock dynamo errs on dynamic numbers, and fails on 0 and on output_size.

    Math: repeating each cell r times is a new axis of r equal cells, flattened into the one before it. The output_size
          only spares torch a look at the numbers.
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


@decomposition(torch.repeat_interleave, **ON_TORCHSCRIPT)
def repeat_interleave_to_nonzero(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Repeats each cell of an axis its own number of times; stock TorchScript errs on constants, and writes loops.

    Where the axis is counted from the end, stock adds the rank to the constant itself, which other operators read too.

    Math: row i of the table (n, largest number) begins with as many trues as cell i is repeated; its nonzero entries,
          row by row, name the cells of the result.
    """
    if repeats is None:
        return _repeat_numbers(input)
    if not isinstance(repeats, Tensor) or repeats.dim() == 0 or static_size(repeats, 0) == 1:
        return NotImplemented if dim is None or dim >= 0 else input.repeat_interleave(repeats, dim + input.dim())
    x, axis = (input.flatten(), 0) if dim is None else (input, dim)
    return x.index_select(axis, _repeat_numbers(repeats))


def _repeat_numbers(times: Tensor) -> Tensor:
    """The number i of each cell, times[i] times over."""
    longest: Any = torch.cat((times, times.new_zeros(1))).amax()  # amax of nothing is an error
    table = torch.arange(longest, device=times.device) < times.unsqueeze(1)
    return table.nonzero()[:, 0]
