"""The shapes of what moves, takes, repeats or fills elements: Reshape and its like, Slice, Gather, Concat, Expand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.slim.arithmetic import part_of_shape, taken
from torch_onnx_compat.graph.slim.facts import Facts, Shape, broadcast, product
from torch_onnx_compat.graph.slim.size import Size, at_least, divide_exactly
from torch_onnx_compat.graph.slim.table import Table

Rule: TypeAlias = Callable[[Facts, ir.Node], "Shape | None"]
"""The shape of a node's first result; None if it is not known."""

Rules: TypeAlias = Callable[[Facts, ir.Node], "list[Shape | None]"]
"""The shapes of all results; fewer if the rest are not known."""

SHAPES: Table[Rule] = Table()
SEVERAL: Table[Rules] = Table()


def axes_of(facts: Facts, node: ir.Node, place: int = 1) -> list[int] | None:
    """The axes of a Squeeze, Unsqueeze or reduction, from the attribute or the input; [] without any."""
    if "axes" in node.attributes:
        return list(node.attributes.get_ints("axes", ()))
    if len(node.inputs) <= place or node.inputs[place] is None:
        return []
    return facts.ints(node.inputs[place])


def target_of(facts: Facts, node: ir.Node) -> Shape | None:
    """The shape that a Reshape gives its input, which its result has."""
    shape, target = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if target is None:
        return None
    sizes: list[Size] = []
    keeps_zeros = node.attributes.get_int("allowzero", 0) == 1
    for place, size in enumerate(target):
        if size == 0 and not keeps_zeros:
            if shape is None or place >= len(shape):
                return None
            size = shape[place]
        sizes.append(size)
    if -1 not in sizes:
        # A size that may be less than 0 would be the one that is to be found.
        return tuple(sizes) if all(at_least(size, 0) for size in sizes) else None
    at = sizes.index(-1)
    rest = product(sizes[:at] + sizes[at + 1 :])
    found = None
    if shape is not None and rest != 0:
        found = divide_exactly(product(shape), rest)
    sizes[at] = facts.axis(node.outputs[0], at) if found is None else found
    return tuple(sizes) if all(at_least(size, 0) for size in sizes) else None


@SHAPES.of("Shape")
def _shape(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (len(shape[part_of_shape(node)]),)


@SHAPES.of("Size")
def _size(facts: Facts, node: ir.Node) -> Shape | None:
    return ()


@SHAPES.of("Reshape")
def _reshape(facts: Facts, node: ir.Node) -> Shape | None:
    found = target_of(facts, node)
    if found is not None:
        return found
    count = facts.shape(node.inputs[1])
    if count is None or not isinstance(count[0], int):
        return None
    return tuple(facts.axis(node.outputs[0], place) for place in range(count[0]))


@SHAPES.of("Flatten")
def _flatten(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    axis = node.attributes.get_int("axis", 1)
    if shape is None:
        return None
    axis += len(shape) if axis < 0 else 0
    return (product(shape[:axis]), product(shape[axis:]))


@SHAPES.of("Squeeze")
def _squeeze(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    if not axes:
        return tuple(s for s in shape if s != 1) if all(isinstance(s, int) for s in shape) else None
    gone = {axis % len(shape) for axis in axes}
    return tuple(size for place, size in enumerate(shape) if place not in gone)


@SHAPES.of("Unsqueeze")
def _unsqueeze(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    return tuple(1 if place in new else next(rest) for place in range(rank))


@SHAPES.of("Transpose")
def _transpose(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else tuple(shape[place] for place in order_of(node, len(shape)))


def order_of(node: ir.Node, rank: int) -> tuple[int, ...]:
    """The axes of a Transpose's input in the order of its result."""
    return tuple(node.attributes.get_ints("perm", tuple(reversed(range(rank)))))


@SHAPES.of("Expand")
def _expand(facts: Facts, node: ir.Node) -> Shape | None:
    sizes = facts.sizes(node.inputs[1])
    if sizes is None or not all(at_least(size, 0) for size in sizes):
        return None
    return broadcast(facts, facts.shape(node.inputs[0]), tuple(sizes))


@SHAPES.of("ConstantOfShape")
def _constant_of_shape(facts: Facts, node: ir.Node) -> Shape | None:
    sizes = facts.sizes(node.inputs[0])
    return None if sizes is None or not all(at_least(size, 0) for size in sizes) else tuple(sizes)


@SHAPES.of("Range")
def _range(facts: Facts, node: ir.Node) -> Shape | None:
    start, limit, step = map(facts.sizes, node.inputs)
    if start is None or limit is None or step is None:
        return (facts.axis(node.outputs[0], 0),)
    if step[0] == 1:
        difference = limit[0] - start[0]
        if at_least(difference, 0):
            return (difference,)
    if isinstance(start[0], int) and isinstance(limit[0], int) and isinstance(step[0], int) and step[0]:
        return (len(range(start[0], limit[0], step[0])),)
    return (facts.axis(node.outputs[0], 0),)


@SHAPES.of("Tile")
def _tile(facts: Facts, node: ir.Node) -> Shape | None:
    shape, repeats = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if shape is None or repeats is None or not all(at_least(size, 0) for size in repeats):
        return None
    return tuple(size * count for size, count in zip(shape, repeats, strict=True))


@SHAPES.of("Pad")
def _pad(facts: Facts, node: ir.Node) -> Shape | None:
    shape, pads = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    axes = facts.ints(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    if shape is None or pads is None or (len(node.inputs) > 3 and node.inputs[3] is not None and axes is None):
        return None
    places = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
    sizes, half = list(shape), len(pads) // 2
    for count, place in enumerate(places):
        sizes[place] = natural_size(facts, node, place, sizes[place] + pads[count] + pads[half + count])
    return tuple(sizes)


@SHAPES.of("Concat")
def _concat(facts: Facts, node: ir.Node) -> Shape | None:
    shapes = [facts.shape(value) for value in node.inputs]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    axis = node.attributes.get_int("axis", 0) % len(known[0])
    sizes = [
        next((s[place] for s in known if isinstance(s[place], int)), known[0][place]) for place in range(len(known[0]))
    ]
    total: Size = facts.axis(node.outputs[0], axis)
    if len(known) == len(shapes):
        total = 0
        for shape in known:
            total = total + shape[axis]
    sizes[axis] = total
    return tuple(sizes)


@SHAPES.of("Gather")
def _gather(facts: Facts, node: ir.Node) -> Shape | None:
    shape, places = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or places is None:
        return None
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return (*shape[:axis], *places, *shape[axis + 1 :])


@SHAPES.of("GatherElements")
def _gather_elements(facts: Facts, node: ir.Node) -> Shape | None:
    return facts.shape(node.inputs[1])


@SHAPES.of("GatherND")
def _gather_nd(facts: Facts, node: ir.Node) -> Shape | None:
    shape, places = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or not places or not isinstance(places[-1], int):
        return None
    return (*places[:-1], *shape[node.attributes.get_int("batch_dims", 0) + places[-1] :])


@SHAPES.of("Slice")
def _slice(facts: Facts, node: ir.Node) -> Shape | None:
    shape, cuts = facts.shape(node.inputs[0]), cuts_of(facts, node)
    if shape is None:
        return None
    if cuts is None:
        return tuple(facts.axis(node.outputs[0], place) for place in range(len(shape)))
    sizes = list(shape)
    for place, start, end, step in cuts:
        length = cut_length(sizes[place], start, end, step)
        sizes[place] = facts.axis(node.outputs[0], place) if length is None else length
    return tuple(sizes)


LARGEST = 2**31 - 1
"""No axis is longer; ends from here on mean the end of the axis."""

Cut: TypeAlias = tuple[int, Size, Size, int]
"""Axis, start, end and step of a Slice."""


def cuts_of(facts: Facts, node: ir.Node) -> list[Cut] | None:
    """What a Slice takes from each axis that it names."""
    shape, starts, ends = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1]), facts.sizes(node.inputs[2])
    if shape is None or starts is None or ends is None:
        return None
    axes: list[int] | None = list(range(len(starts)))
    steps: list[int] | None = [1] * len(starts)
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        axes = facts.ints(node.inputs[3])
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = facts.ints(node.inputs[4])
    if axes is None or steps is None:
        return None
    return [(a % len(shape), s, e, t) for a, s, e, t in zip(axes, starts, ends, steps, strict=True)]


def cut_length(size: Size, start: Size, end: Size, step: int) -> Size | None:
    """How many elements a cut takes from an axis; None where a run decides."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(taken(size, start, end, step))
    first, last = _clamped(size, start), _clamped(size, end)
    if step != 1 or first is None or last is None:
        return None
    length = last - first
    return length if at_least(length, 0) else 0 if at_least(-length, 0) else None


def _clamped(size: Size, place: Size) -> Size | None:
    """Where a start or an end lies, from 0 to the size; None where a run decides."""
    if at_least(place, 0):
        if at_least(size - place, 0):
            return place
        is_beyond = isinstance(place, int) and place >= LARGEST
        return size if is_beyond or at_least(place - size, 0) else None
    if not at_least(-place, 1):
        return None
    counted = size + place
    if at_least(counted, 0):
        return counted
    return 0 if at_least(-counted, 0) else None


def natural_size(facts: Facts, node: ir.Node, axis: int, size: Size) -> Size:
    """A computed size, of which the computation may not show that it is 0 or more, though it is the size of an axis."""
    if at_least(size, 0):
        return size
    if isinstance(size, int):
        return facts.axis(node.outputs[0], axis)  # the node fails
    return facts.unknowns.get(("axis", size), is_natural=True)


@SHAPES.of("DepthToSpace")
def _depth_to_space(facts: Facts, node: ir.Node) -> Shape | None:
    shape, block = facts.shape(node.inputs[0]), node.attributes.get_int("blocksize", 1)
    if shape is None:
        return None
    channels = divide_exactly(shape[1], block * block)
    return None if channels is None else (shape[0], channels, shape[2] * block, shape[3] * block)


@SHAPES.of("SpaceToDepth")
def _space_to_depth(facts: Facts, node: ir.Node) -> Shape | None:
    shape, block = facts.shape(node.inputs[0]), node.attributes.get_int("blocksize", 1)
    if shape is None:
        return None
    height, width = divide_exactly(shape[2], block), divide_exactly(shape[3], block)
    return None if height is None or width is None else (shape[0], shape[1] * block * block, height, width)


@SEVERAL.of("Split")
def _split(facts: Facts, node: ir.Node) -> list[Shape | None]:
    shape, count = facts.shape(node.inputs[0]), len(node.outputs)
    if shape is None:
        return []
    axis = node.attributes.get_int("axis", 0) % len(shape)
    parts: Sequence[Size] | None = None
    if "split" in node.attributes:
        parts = list(node.attributes.get_ints("split", ()))
    elif len(node.inputs) > 1 and node.inputs[1] is not None:
        parts = facts.sizes(node.inputs[1])
    else:
        part = divide_exactly(shape[axis], count)
        parts = None if part is None else [part] * count
    if parts is None or not all(at_least(part, 0) for part in parts):
        parts = [facts.axis(value, axis) for value in node.outputs]
    return [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]
