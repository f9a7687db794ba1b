"""Writing into a box of a tensor: ScatterND at places that an exporter lists one by one.

``x[:, 1:] = y`` becomes a list of all places that are written, made of a Range along each axis; with a dynamic axis, it
is made anew in each run. What such a list says is found again: along which axis a tensor counts, and from where.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.slim.facts import Facts, Shape
from torch_onnx_compat.graph.slim.movements import axes_of, cuts_of
from torch_onnx_compat.graph.slim.rewriting import Walk

Count: TypeAlias = tuple[int | None, int]
"""The axis along which a tensor's elements count up by 1, and the first one; no axis if all of them are equal."""

Cut: TypeAlias = tuple[int, int, int, int]
"""An axis that is written in part: its number, where the box begins and ends, and its size."""

_MOST_AXES = 2
"""Axes of a box that are written in part, at most: each takes a Concat and up to three Slices."""


def written_box(walk: Walk, node: ir.Node) -> ir.Value | None:
    """What a ScatterND at the places of a box yields, without a list of places that a run makes; None if it is none."""
    facts = walk.facts
    data, places, updates = (facts.shape(value) for value in node.inputs)
    if node.attributes.get_string("reduction", "none") != "none" or data is None or places is None or updates is None:
        return None
    box, count = places[:-1], len(places) - 1
    if all(isinstance(size, int) for size in places) or places[-1] != count or updates != box + data[count:]:
        return None
    starts = _starts(facts, node.inputs[1], box)
    if starts is None:
        return None
    cuts: list[Cut] = []
    for axis, (start, length, size) in enumerate(zip(starts, box, data, strict=False)):
        if start == 0 and length == size:
            continue
        if not isinstance(length, int) or not isinstance(size, int) or start + length > size:
            return None
        cuts.append((axis, start, start + length, size))
    return None if len(cuts) > _MOST_AXES else _written(walk, node, node.inputs[0], cuts)


def _written(walk: Walk, node: ir.Node, data: ir.Value | None, cuts: list[Cut]) -> ir.Value | None:
    if not cuts:
        return node.inputs[2]
    (axis, start, end, size), *rest = cuts
    parts = [
        _part(walk, node, data, axis, 0, start) if start else None,
        _written(walk, node, _part(walk, node, data, axis, start, end), rest) if rest else node.inputs[2],
        _part(walk, node, data, axis, end, size) if end < size else None,
    ]
    return walk.node(node, "Concat", [part for part in parts if part is not None], {"axis": axis})


def _part(walk: Walk, node: ir.Node, data: ir.Value | None, axis: int, start: int, end: int) -> ir.Value:
    numbers = [walk.constant(np.array([number], np.int64)) for number in (start, end, axis)]
    return walk.node(node, "Slice", [data, *numbers])


def _starts(facts: Facts, places: ir.Value | None, box: Shape) -> list[int] | None:
    """The first place along each axis, if the places are all those of a box, in order."""
    concat = None if places is None else places.producer()
    lists = [places]
    if len(box) > 1:
        if concat is None or concat.op_type != "Concat" or concat.attributes.get_int("axis", 0) not in (-1, len(box)):
            return None
        lists = list(concat.inputs)
    if len(lists) != len(box):
        return None
    starts: list[int] = []
    for axis, value in enumerate(lists):
        if facts.shape(value) != (*box, 1):
            return None
        count = _count(facts, value)
        if count is None or count[1] < 0 or (count[0] != axis and not (count[0] is None and box[axis] == 1)):
            return None
        starts.append(count[1])
    return starts


def _count(facts: Facts, value: ir.Value | None) -> Count | None:
    """Along which axis a tensor counts, found from the nodes that make it."""
    numbers, shape = facts.ints(value), facts.shape(value)
    if numbers and shape is not None:
        long = [axis for axis, size in enumerate(shape) if size != 1]
        if len(set(numbers)) == 1:
            return (None, numbers[0])
        return (
            (long[0], numbers[0])
            if len(long) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            else None
        )
    node = None if value is None else value.producer()
    if node is None or node.domain or node.op_type not in _COUNTS:
        return None
    return _COUNTS[node.op_type](facts, node)


def _of_range(facts: Facts, node: ir.Node) -> Count | None:
    start, step = facts.ints(node.inputs[0]), facts.ints(node.inputs[2])
    return (0, start[0]) if start is not None and step == [1] else None


def _of_cast(facts: Facts, node: ir.Node) -> Count | None:
    whole = (ir.DataType.INT64, ir.DataType.INT32)
    return _count(facts, node.inputs[0]) if facts.dtype(node.outputs[0]) in whole else None


def _of_unsqueeze(facts: Facts, node: ir.Node) -> Count | None:
    count, axes, shape = _count(facts, node.inputs[0]), axes_of(facts, node), facts.shape(node.outputs[0])
    if count is None or axes is None or shape is None or count[0] is None:
        return count
    new = {axis % len(shape) for axis in axes}
    old = [axis for axis in range(len(shape)) if axis not in new]
    return (old[count[0]], count[1])


def _of_reshape(facts: Facts, node: ir.Node) -> Count | None:
    count, before, after = _count(facts, node.inputs[0]), facts.shape(node.inputs[0]), facts.shape(node.outputs[0])
    if count is None or count[0] is None or before is None or after is None:
        return count
    long = [axis for axis, size in enumerate(after) if size != 1]
    same = [size for size in before if size != 1] == [size for size in after if size != 1]
    return (long[0], count[1]) if same and len(long) == 1 else None


def _of_expand(facts: Facts, node: ir.Node) -> Count | None:
    count, before, after = _count(facts, node.inputs[0]), facts.shape(node.inputs[0]), facts.shape(node.outputs[0])
    if count is None or count[0] is None or before is None or after is None:
        return count
    axis = count[0] + len(after) - len(before)
    return (axis, count[1]) if after[axis] == before[count[0]] else None


def _of_slice(facts: Facts, node: ir.Node) -> Count | None:
    count, cuts = _count(facts, node.inputs[0]), cuts_of(facts, node)
    if count is None or cuts is None or count[0] is None:
        return None
    starts = [(start, step) for axis, start, _, step in cuts if axis == count[0]]
    if not starts:
        return count
    start, step = starts[0]
    return (count[0], count[1] + start) if isinstance(start, int) and start >= 0 and step == 1 else None


_COUNTS = {
    "Range": _of_range,
    "Cast": _of_cast,
    "Unsqueeze": _of_unsqueeze,
    "Reshape": _of_reshape,
    "Expand": _of_expand,
    "Slice": _of_slice,
}
