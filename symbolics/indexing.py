"""Reading and writing by index, mask or position: x[i, :, mask, j], and functions for the same."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.ops import Number
from torch_onnx_compat.tracing import size_tensor, static_size

WITHOUT_NONZERO = (torch.float64, torch.float16, torch.int8, torch.int16)
BITWISE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
ADDING = Declaration(needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)


# Advanced indexing in ONNX operators: x[i, :, mask, j] read, and added to


@dataclass(frozen=True)
class Index:
    """The integer index of one axis."""

    axis: int
    value: Value
    shape: tuple[int | None, ...]
    may_be_negative: bool = True


class Indexing:
    """What a list of indices means for a tensor.

    Math:   integer indices of k axes broadcast together to a shape b. With these axes in front, x[i, j] is GatherND of
            the tensor (*b, k) of places, and adding there is, with the k axes made one, ScatterElements. A mask of r
            axes stands for r indices, the columns of its nonzero places.
    Source: https://numpy.org/doc/stable/user/basics.indexing.html#advanced-indexing

    Args:
        op: Adds the nodes.
        x: The indexed tensor, an argument of the symbolic.
        indices: One for each axis, masks one for several; None where the axis is taken whole.
    """

    def __init__(self, op: Ops, x: Value, indices: Sequence[Value | None]) -> None:
        rank = op.rank(x)
        if rank is None:
            decline("the rank of the indexed tensor is not known")
        self.op, self.rank = op, rank
        self.indices = _integers(op, indices)
        axes = [index.axis for index in self.indices]
        self.others = [axis for axis in range(rank) if axis not in axes]
        self.depth = len(axes)
        self.places_rank = max(len(index.shape) for index in self.indices)
        joined = axes[-1] - axes[0] + 1 == self.depth
        self.before = axes[0] if joined else 0
        """How many of the result's axes stand before those of the indices."""
        self.perm = [*axes, *self.others]
        self.front = x if self.perm == sorted(self.perm) else op.Transpose(x, perm=self.perm)

    def places(self) -> Value:
        """The indices as one tensor (*b, k)."""
        op = self.op
        columns = [op.Unsqueeze(value, [-1]) for value in self.broadcast()]
        return columns[0] if len(columns) == 1 else op.Concat(*columns, axis=-1)

    def broadcast(self) -> list[Value]:
        """The indices, all of shape b."""
        op, values = self.op, [index.value for index in self.indices]
        shapes = {index.shape for index in self.indices}
        if len(values) == 1 or (len(shapes) == 1 and None not in next(iter(shapes))):
            return values
        if not any(index.may_be_negative for index in self.indices):
            return values  # columns of one mask
        total = values[0]
        for value in values[1:]:
            total = op.Add(total, value)
        shape = op.Shape(total)
        return [op.Expand(value, shape) for value in values]

    def reorder(self, result: Value) -> Value:
        """A result (*b, *others) with its axes where indexing puts them."""
        width = self.places_rank
        if not self.before:
            return result
        after = range(width + self.before, width + len(self.others))
        return self.op.Transpose(result, perm=[*range(width, width + self.before), *range(width), *after])

    def updates(self, values: Value, places: Value) -> Value:
        """Values to write, brought to (*b, *others) and to the type of x."""
        op, width = self.op, self.places_rank
        rank = op.rank(values)
        if rank is None:
            decline("the rank of the values is not known")
        total = width + len(self.others)
        if self.before and rank > len(self.others) - self.before:
            if rank < total:
                values = op.Unsqueeze(values, list(range(total - rank)))
            order = [*range(self.before, self.before + width), *range(self.before), *range(self.before + width, total)]
            values = op.Transpose(values, perm=order)
        return op.Expand(values, self.shape(places))

    def shape(self, places: Value) -> Value:
        """(*b, *others) as a tensor."""
        leading = _sizes(self.op, places, 0, -1)
        if not self.others:
            return leading
        return self.op.Concat(leading, _sizes(self.op, self.front, self.depth, self.rank), axis=0)

    def original_order(self, front: Value) -> Value:
        """A tensor of the shape of `front` with its axes as x has them."""
        if self.perm == sorted(self.perm):
            return front
        return self.op.Transpose(front, perm=[self.perm.index(axis) for axis in range(self.rank)])

    def flat(self) -> Value:
        """The indices as one vector, counting the places of the indexed axes in order; negative ones are wrapped."""
        op, total = self.op, None
        if self.depth == 1 and self.places_rank == 1:
            return self.indices[0].value  # ScatterElements wraps
        sizes = op.Shape(self.front)
        for number, (index, value) in enumerate(zip(self.indices, self.broadcast(), strict=True)):
            size = op.Gather(sizes, op.constant(number, torch.int64), axis=0)
            if index.may_be_negative:
                value = op.Where(op.Less(value, op.constant(0, torch.int64)), op.Add(value, size), value)
            total = value if total is None else op.Add(op.Mul(total, size), value)
        return op.Reshape(total, [-1])


def add_at(op: Ops, indexing: Indexing, values: Value) -> Value:
    """The indexed tensor with values added at its places, once for each time that a place is named.

    ScatterElements adds one update after the other; onnxruntime's ScatterND adds with several threads at once, and
    loses some of many updates of one place.
    """
    updates = indexing.updates(values, indexing.places())
    flat, front, others = indexing.flat(), indexing.front, len(indexing.others)
    shape = op.Concat(op.constant([-1], torch.int64), _sizes(op, front, indexing.depth, indexing.rank), axis=0)
    if indexing.depth == 1 and indexing.places_rank == 1:
        rows = front
    elif others:
        rows, updates = op.Reshape(front, shape), op.Reshape(updates, shape)
    else:
        rows, updates = op.Reshape(front, [-1]), op.Reshape(updates, [-1])
    if others:
        flat = op.Expand(op.Unsqueeze(flat, list(range(1, others + 1))), op.Shape(updates))
    total = op.ScatterElements(rows, flat, updates, axis=0, reduction="add")
    if rows is not front:
        total = op.Reshape(total, op.Shape(front))
    return indexing.original_order(total)


def _sizes(op: Ops, x: Value, start: int, end: int) -> Value:
    """A range of sizes; TorchScript's shape inference does not know the attributes of Shape that would do."""
    return op.Slice(op.Shape(x), [start], [end], [0])


def is_mask(op: Ops, index: Value | None) -> bool:
    """Whether an index selects by truth rather than by number."""
    return index is not None and op.dtype(index) in (torch.bool, torch.uint8)


def _integers(op: Ops, indices: Sequence[Value | None]) -> list[Index]:
    found: list[Index] = []
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
            continue
        shape = op.shape(index)
        if shape is None:
            decline("the rank of an index is not known")
        if not is_mask(op, index):
            found.append(Index(axis, op.cast(index, torch.int64), shape))
            axis += 1
            continue
        nonzero = op.NonZero(op.cast(index, torch.bool))
        for row in range(len(shape)):
            column = op.Gather(nonzero, op.constant(row, torch.int64), axis=0)
            found.append(Index(axis, column, (None,), may_be_negative=False))
            axis += 1
    return found


@symbolic("aten::slice", needed_on=("torchscript",), opset=(13, 99), exactness=Exactness.BITWISE)
def slice_by_narrow_integers(
    op: Ops, self: Value, dim: int = 0, start: Number | None = None, end: Number | None = None, step: int = 1
) -> Value:
    """``x[i:j]`` with integers of int32; stock TorchScript writes a Slice with two types, which is no valid model.

    Schema: slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
    Source: https://onnx.ai/onnx/operators/onnx__Slice.html, Tind
    """

    def is_number(bound: Value | Number | None) -> bool:
        return bound is None or isinstance(bound, (bool, int, float))

    def as_int64(bound: Value | Number | None, default: int) -> Value:
        if is_number(bound):
            return op.constant([default if bound is None else bound], torch.int64)
        return op.Reshape(op.cast(bound, torch.int64), [1])

    if all(is_number(bound) or op.dtype(bound) == torch.int64 for bound in (start, end)):
        return NotImplemented
    return op.Slice(self, as_int64(start, 0), as_int64(end, sys.maxsize), [dim], [step])


@symbolic("aten::index", needed_on=("torchscript",), opset=(15, 99), exactness=Exactness.BITWISE)
def index(op: Ops, self: Value, indices: list[Value | None]) -> Value:
    """Reads at places; stock TorchScript reads elsewhere where one of several indices is negative.

    Declines: what has no known rank.

    Math: with the indexed axes in front, GatherND of the indices side by side.
    Schema: index(Tensor self, Tensor?[] indices) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/tensor_view.html; https://onnx.ai/onnx/operators/onnx__GatherND.html
    """
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if not given:
        return self
    axis, only = given[0]
    if len(given) == 1 and not is_mask(op, only):
        return op.Gather(self, op.cast(only, torch.int64), axis=axis)
    if len(given) == 1 and op.rank(only) == 1:
        return op.Compress(self, op.cast(only, torch.bool), axis=axis)
    if len(given) == 1 and axis == 0:
        return op.GatherND(self, op.Transpose(op.NonZero(op.cast(only, torch.bool)), perm=[1, 0]))
    indexing = Indexing(op, self, indices)
    return indexing.reorder(op.GatherND(indexing.front, indexing.places()))


@symbolic("aten::index_put", **ADDING)
def index_put(op: Ops, self: Value, indices: list[Value | None], values: Value, accumulate: bool = False) -> Value:
    """Adds at places, or writes at a mask; writing at integers alone is left to torch.

    Stock TorchScript loses repeated places and writes no row at a mask; stock dynamo adds them in a race, writes a mask
    as nine nodes or more, and refuses a mask behind whole axes.

    Declines: sums of truth values, and of what has no known rank.

    Math: what is the same at every place of a mask is a choice between it and x; other values are updates of ScatterND.
          In a sum, every repetition of a place counts.
    Schema: index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
    """
    dtype = op.dtype(self)
    masks = [index for index in indices if is_mask(op, index)]
    if not accumulate and not masks:
        return NotImplemented
    if not accumulate and len(indices) - indices.count(None) == 1:
        chosen = _where(op, self, indices, values)
        if chosen is not None:
            return chosen
    indexing = Indexing(op, self, indices)
    if not accumulate:
        places = indexing.places()
        return indexing.original_order(
            op.ScatterND(indexing.front, places, indexing.updates(op.cast(values, dtype), places))
        )
    if dtype == torch.bool:
        decline("truth values have no sum")
    return add_at(op, indexing, op.cast(values, dtype))


def _where(op: Ops, x: Value, indices: list[Value | None], value: Value) -> Value | None:
    """`value` where the only index, a mask, is true; None if places of the mask have different values."""
    axis, mask = next((axis, index) for axis, index in enumerate(indices) if index is not None)
    rank, covered, width = op.rank(x), op.rank(mask), op.rank(value)
    if rank is None or covered is None or width is None:
        return None
    after = rank - axis - covered
    if width > after:
        return None
    mask = op.cast(mask, torch.bool)
    if after:
        mask = op.Unsqueeze(mask, list(range(covered, covered + after)))
    value = op.cast(value, op.dtype(x))
    if op.dtype(x) == torch.bool:  # onnxruntime has no Where of bool
        return op.Or(op.And(mask, value), op.And(op.Not(mask), x))
    return op.Where(mask, value, x)


# Indexing that goes wrong before it comes to an operator


@decomposition(Tensor.__getitem__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def getitem_of_int32(self: Tensor, key: Any) -> Tensor:
    """Reads at places; stock dynamo hands the index on as it is, into files that no engine loads.

    Math: GatherND takes int64 only.
    Source: https://onnx.ai/onnx/operators/onnx__GatherND.html
    """
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, Tensor) and k.dtype == torch.int32 and k.dim() for k in keys):
        return NotImplemented
    wide = tuple(k.to(torch.int64) if isinstance(k, Tensor) and k.dtype == torch.int32 else k for k in keys)
    return self[wide]


# Functions that read and write at places


@symbolic("torch_onnx_compat::take", **BITWISE)
def take(op: Ops, x: Value, table: Value, axis: int) -> Value:
    """Reads the cells of an axis that a table of any rank names; the exporters do not know the operator.

    Schema: take(Tensor x, Tensor table, int axis) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Gather.html; torch_onnx_compat.functional.take
    """
    return op.Gather(x, table, axis=axis)


@symbolic("aten::put", **ADDING)
def put(op: Ops, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """Writes or adds at places of the flattened tensor; stock TorchScript refuses, stock dynamo adds in a race.

    Schema: put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.put_.html
    """
    flat, places, values = (op.Reshape(value, [-1]) for value in (self, op.cast(index, torch.int64), source))
    written = op.ScatterElements(flat, places, values, axis=0, reduction="add" if accumulate else None)
    return op.Reshape(written, op.Shape(self))


@decomposition(torch.masked_select, **BITWISE)
def masked_select_to_index(input: Tensor, mask: Tensor) -> Tensor:
    """Elements where the mask is true; stock dynamo has no function for it.

    Stock TorchScript's file fails where the mask is larger than the input.
    """
    sizes, wanted = ([static_size(x, axis) for axis in range(x.dim())] for x in (input, mask))
    if sizes != wanted:
        input, mask = torch.broadcast_tensors(input, mask)
    return input[mask]


@decomposition(torch.take_along_dim, **BITWISE)
def take_along_dim_to_gather(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Values at places along an axis; stock TorchScript has no symbolic for it, stock dynamo fixes dynamic axes.

    Axes are broadcast only if they are known to be 1.

    Math: gather of tensors that are broadcast against each other on all other axes.
    """
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % input.dim()
    source, places = [-1] * input.dim(), [-1] * input.dim()
    for other in range(input.dim()):
        single, chosen = static_size(input, other) == 1, static_size(indices, other) == 1
        if other != axis and chosen and not single:
            places[other] = input.shape[other]
        elif other != axis and single and not chosen:
            source[other] = indices.shape[other]
    return _expand(input, source).gather(axis, _expand(indices, places))


def _expand(x: Tensor, sizes: list[int]) -> Tensor:
    return x if all(type(size) is int and size == -1 for size in sizes) else x.expand(sizes)


@decomposition(torch.nonzero, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def nonzero_of_other_types(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Places that are not 0, of types for which onnxruntime has no NonZero."""
    if input.dtype not in WITHOUT_NONZERO:
        return NotImplemented
    places: Any = torch.nonzero
    return places(input != 0, as_tuple=as_tuple)


@decomposition(torch.argwhere, **BITWISE)
def argwhere_to_nonzero(input: Tensor) -> Tensor:
    """Places of what is not 0; stock TorchScript has no symbolic for it, stock dynamo errs on a tensor without axes."""
    if not input.dim():
        return torch.nonzero(input.reshape(1) != 0)[:, :0]
    return torch.nonzero(input != 0 if input.dtype in WITHOUT_NONZERO else input)


@decomposition(torch.nonzero_static, **BITWISE)
def nonzero_static_to_topk(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Places (size, D) of what is not zero in a tensor of D axes, in order, filled up with a number.

    Declines: a tensor without axes.

    Math: of n flat cells, cell i has the key n - i where it is not zero, else 0. The k largest keys in descending order
          are the first k cells that are not zero, in order; behind them keys of 0 stand for the fill value.
    """
    if input.dim() == 0:
        decline("the tensor must have an axis")
    flat = (input != 0).reshape(-1)
    numbers = torch.arange(flat.shape[0], 0, -1, device=input.device)
    keys = torch.where(flat, numbers, torch.zeros_like(numbers))
    keys = torch.cat((keys, keys.new_zeros(size)))  # there may be fewer cells than places
    best = keys.topk(size).values.reshape(size)  # the reshape tells the exporter that the size is fixed
    place = flat.shape[0] - best
    columns: list[Tensor] = []
    for axis in reversed(range(input.dim())):
        fixed = static_size(input, axis)
        length: Any = size_tensor(input, axis).clamp(min=1) if fixed is None else max(fixed, 1)
        columns.append(place % length)
        place = place // length
    found = torch.stack(columns[::-1], 1)
    return torch.where((best > 0).unsqueeze(1), found, torch.full_like(found, fill_value))


@decomposition(torch.narrow, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def narrow_from_the_end(input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    """Cuts out a piece whose start counts from the end; stock TorchScript's is empty where it reaches the end.

    Math: the last s of n cells begin at n - s. As a slice, from -s to -s + s = 0, they would be none.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.narrow.html
    """
    if type(start) is not int or start >= 0 or (type(length) is int and start + length < 0):
        return NotImplemented
    size = static_size(input, dim)
    return torch.narrow(input, dim, start + (input.shape[dim] if size is None else size), length)
