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
        return bool(given) and (all(given) if node.op_type == "Concat" else any(given))

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


def _has_cells(value: ir.Value, axis: int) -> bool:
    """Whether the size of an axis is known, and not 0."""
    size = value.shape[axis] if value.shape is not None and -len(value.shape) <= axis < len(value.shape) else None
    return isinstance(size, int) and size > 0


def _is_whole(value: ir.Value) -> bool:
    """Whether all sizes of a value are known, none of them 0."""
    return value.shape is not None and all(_has_cells(value, axis) for axis in range(len(value.shape)))
