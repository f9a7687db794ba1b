"""Advanced indexing in ONNX operators: x[i, :, mask, j] read, written and added to.

Math:   integer indices of k axes broadcast together to a shape b; with these axes in front, x[i, j] is GatherND of the
        tensor (*b, k) of places, and its counterparts are ScatterND and, with the k axes made one, ScatterElements. A
        mask of r axes stands for the r columns of its nonzero places.
Source: https://numpy.org/doc/stable/user/basics.indexing.html#advanced-indexing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torch_onnx_compat.entry import decline
from torch_onnx_compat.ops import Ops, Value


@dataclass(frozen=True)
class Index:
    """The integer index of one axis."""

    axis: int
    value: Value
    shape: tuple[int | None, ...]
    may_be_negative: bool = True


class Indexing:
    """What a list of indices means for a tensor.

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

    def ordered(self, result: Value) -> Value:
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


def added(op: Ops, indexing: Indexing, values: Value) -> Value:
    """The indexed tensor with values added at its places, once for each time that a place is named."""
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
    if indexing.perm == sorted(indexing.perm):
        return total
    return op.Transpose(total, perm=[indexing.perm.index(axis) for axis in range(indexing.rank)])


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
