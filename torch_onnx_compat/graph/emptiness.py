"""Which values of a graph may be empty at run time, though no axis of the model's inputs is.

A mask may select nothing, and a slice may begin behind the end of its axis. What is computed from a value that may be
empty may be empty, too, except where the sizes of the result are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.walk import inner_graphs

_SELECTIONS = frozenset({"NonZero", "Compress", "NonMaxSuppression"})
"""Operators whose values decide how much they yield."""

_SIZED_BY = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1, "TopK": 1, "Range": 1, "OneHot": 1, "Split": 1}
"""Operators whose result is as large as numbers say, and the place of these numbers."""

_OF_SIZES = {
    **dict.fromkeys(("Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity"), slice(1)),
    **dict.fromkeys(("Concat", "Mul", "Add", "Max"), slice(None)),
    "Where": slice(1, 3),
}
"""Operators that make sizes other than 0 of such sizes, and the places of these."""

_SHAPED_AS_FIRST = frozenset({"ScatterND", "ScatterElements"})

_END = 2**31 - 1
"""The least number by which a slice says that it goes to the end of its axis."""

_MOST_AXES = 64
"""Numbers that a list of sizes may hold."""


class Emptiness:
    """The values of a model that may be empty.

    Args:
        model: The model; its functions are not looked into.
    """

    def __init__(self, model: ir.Model) -> None:
        self._empty: set[ir.Value] = set()
        self._sizes: set[ir.Value] = set()
        """Values that hold sizes, none of which is 0."""
        self._walk(model.graph)

    def may_be_empty(self, value: ir.Value, axes: Sequence[int] | None = None) -> bool:
        """Whether a value may be empty along one of the axes; None is all of them."""
        return value in self._empty and (axes is None or not all(_has_cells(value, axis) for axis in axes))

    def _walk(self, graph: ir.Graph) -> None:
        for node in graph:
            is_empty = self._of_node(node)
            for inner in inner_graphs(node):
                is_empty |= self._of_body(inner, is_empty=is_empty)
            if is_empty:
                self._empty.update(value for value in node.outputs if not _is_whole(value))
            if self._yields_sizes(node):
                self._sizes.update(node.outputs)

    def _of_body(self, graph: ir.Graph, *, is_empty: bool) -> bool:
        """Whether a result of a body may be empty; the next round of a loop is given what one leaves."""
        if is_empty:
            self._empty.update(graph.inputs)
        self._walk(graph)
        found = any(value in self._empty for value in graph.outputs)
        return self._of_body(graph, is_empty=True) if found and graph.inputs and not is_empty else found

    def _of_node(self, node: ir.Node) -> bool:
        """Whether the results of a node may be empty, but for its bodies."""
        if node.op_type in _SELECTIONS or (node.op_type == "Slice" and self._may_leave_nothing(node)):
            return True
        sizes = node.inputs[_SIZED_BY[node.op_type]] if len(node.inputs) > _SIZED_BY.get(node.op_type, 99) else None
        if sizes is not None and not self._is_size(sizes):
            return True
        if node.op_type == "Range" and _numbers(node, 0) != [0]:
            return True
        given = [value in self._empty for value in node.inputs if value is not None]
        if node.op_type in _SHAPED_AS_FIRST:
            return given[0]
        if node.op_type == "Concat":
            return bool(given) and all(given) and not self._joins_all(node)
        return any(given)

    def _joins_all(self, node: ir.Node) -> bool:
        """Whether this joins the two parts of one value before and behind some place of an axis, as a roll does.

        One of them has a cell, then, where the value has one.
        """
        parts = [value.producer() for value in node.inputs if value is not None]
        if len(parts) != 2 or not all(part is not None and _is_of_one_axis(part) for part in parts):
            return False
        (one, axis), (other, other_axis) = ((part.inputs[0], _numbers(part, 3)) for part in parts if part is not None)
        is_same = one is other and axis == other_axis and one not in self._empty
        return is_same and (self._meet(parts[0], parts[1]) or self._meet(parts[1], parts[0]))

    def _meet(self, head: ir.Node | None, tail: ir.Node | None) -> bool:
        """Whether a slice begins where another one ends that begins with the first cell, and goes to the end."""
        if head is None or tail is None:
            return False
        place, end = _place(tail.inputs[1]), _place(tail.inputs[2])
        if not _are_same(_place(head.inputs[1]), 0) or not _are_same(_place(head.inputs[2]), place):
            return False
        if isinstance(end, int):
            return end >= _END
        return any(_are_same(added, place) and self._is_rest(rest, place) for added, rest in _sums(end, "Add"))

    def _is_rest(self, value: ir.Value | int | None, place: ir.Value | int | None) -> bool:
        """Whether a value is how much of an axis lies behind a place."""
        left = _sums(value, "Sub")[:1]
        return any(_are_same(subtracted, place) and self._holds_size(size) for size, subtracted in left)

    def _holds_size(self, value: ir.Value | int | None) -> bool:
        return value > 0 if isinstance(value, int) else value in self._sizes

    def _may_leave_nothing(self, node: ir.Node) -> bool:
        """Whether a slice may leave nothing of an axis that has a cell."""
        starts, ends, axes, steps = (_numbers(node, place) for place in (1, 2, 3, 4))
        if starts is None:
            return True
        has_sizes = ends is None and self._is_size(node.inputs[2])
        for place, start in enumerate(starts):
            axis = place if len(node.inputs) < 4 else None if axes is None else axes[place]
            if axis is not None and _has_cells(node.outputs[0], axis):
                continue
            end = ends[place] if ends is not None else 1 if has_sizes else 0
            if steps is not None and steps[place] < 0:
                leaves_some = start == -1 and end < -_END
            else:
                leaves_some = (start == 0 and end > 0) or (start < 0 and end >= _END)
            if not leaves_some:
                return True
        return False

    def _yields_sizes(self, node: ir.Node) -> bool:
        if node.op_type in ("Shape", "Size"):
            return node.inputs[0] not in self._empty
        places = _OF_SIZES.get(node.op_type)
        return places is not None and all(
            value is not None and self._is_size(value, is_product=node.op_type in ("Add", "Mul"))
            for value in node.inputs[places]
        )

    def _is_size(self, value: ir.Value | None, *, is_product: bool = False) -> bool:
        """Whether a value holds no 0; -1, which leaves an axis as it is, is no size to compute with."""
        tensor = constant_tensor(value)
        if tensor is None:
            return value in self._sizes
        if not tensor.dtype.is_integer() or tensor.size > _MOST_AXES:  # weights are not read
            return False
        numbers = tensor.numpy()
        return bool(np.all(numbers > 0 if is_product else numbers != 0))


def _numbers(node: ir.Node, place: int) -> list[int] | None:
    """The numbers of a constant input; None where it is computed or left out."""
    tensor = constant_tensor(node.inputs[place]) if place < len(node.inputs) else None
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]


def _is_of_one_axis(node: ir.Node) -> bool:
    """Whether this slices one axis, which is known, and leaves no cell out between the first and the last."""
    axes, steps = _numbers(node, 3), _numbers(node, 4)
    return node.op_type == "Slice" and axes is not None and len(axes) == 1 and steps in (None, [1])


def _place(value: ir.Value | None) -> ir.Value | int | None:
    """The number that a list of one holds: a plain one, or the value that computes it."""
    while value is not None:
        tensor = constant_tensor(value)
        if tensor is not None:
            return int(tensor.numpy().reshape(-1)[0]) if tensor.size == 1 and tensor.dtype.is_integer() else None
        node = value.producer()
        if node is None or node.op_type not in ("Unsqueeze", "Squeeze", "Reshape", "Identity"):
            return value
        value = node.inputs[0]
    return None


def _are_same(one: ir.Value | int | None, other: ir.Value | int | None) -> bool:
    """Whether two places are one; ``==`` of the values in torch's graphs would add a node."""
    if isinstance(one, int):
        return isinstance(other, int) and one == other
    return one is not None and one is other


def _sums(value: ir.Value | int | None, operator: str) -> list[tuple[ir.Value | int | None, ir.Value | int | None]]:
    """The two numbers that a number is the sum, or the difference, of, and the other way round; none if it is not."""
    node = value.producer() if isinstance(value, ir.Value) else None
    if node is None or node.op_type != operator:
        return []
    one, other = map(_place, node.inputs)
    return [(one, other), (other, one)]


def _has_cells(value: ir.Value, axis: int) -> bool:
    """Whether the size of an axis is known, and not 0."""
    size = value.shape[axis] if value.shape is not None and -len(value.shape) <= axis < len(value.shape) else None
    return isinstance(size, int) and size > 0


def _is_whole(value: ir.Value) -> bool:
    """Whether all sizes of a value are known, none of them 0."""
    return value.shape is not None and all(_has_cells(value, axis) for axis in range(len(value.shape)))
