"""What rewrites a node, by operator: a function that yields the value which replaces the node's result, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.slim.boxes import written_box
from torch_onnx_compat.graph.slim.facts import Shape, broadcast
from torch_onnx_compat.graph.slim.movements import axes_of, cut_length, cuts_of, order_of
from torch_onnx_compat.graph.slim.rewriting import Walk
from torch_onnx_compat.graph.slim.size import Size, at_least, compare
from torch_onnx_compat.graph.slim.table import Table

Rule: TypeAlias = Callable[[Walk, ir.Node], "ir.Value | None"]

RULES: Table[Rule] = Table()

_TO_THE_END = 2**63 - 1
_RESHAPING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")


def _source(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that makes a value, if it is one of these operators."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in op_types and not node.domain else None


# Nodes that do nothing


@RULES.of("Identity")
def _identity(walk: Walk, node: ir.Node) -> ir.Value | None:
    return node.inputs[0]


@RULES.of("Dropout")
def _dropout(walk: Walk, node: ir.Node) -> ir.Value | None:
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return None
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    return node.inputs[0] if mode is None or walk.facts.ints(mode) == [0] else None


@RULES.of("Cast", "CastLike")
def _cast(walk: Walk, node: ir.Node) -> ir.Value | None:
    value, wanted = node.inputs[0], walk.facts.dtype(node.outputs[0])
    if wanted is not None and walk.facts.dtype(value) == wanted:
        return value
    if node.op_type == "CastLike" and wanted is not None:
        return walk.node(node, "Cast", [value], {"to": wanted})
    return None


@RULES.of("Expand")
def _expand(walk: Walk, node: ir.Node) -> ir.Value | None:
    return _unchanged(walk, node)


@RULES.of("Tile")
def _tile(walk: Walk, node: ir.Node) -> ir.Value | None:
    repeats = walk.facts.ints(node.inputs[1])
    return node.inputs[0] if repeats is not None and all(count == 1 for count in repeats) else None


@RULES.of("Pad")
def _pad(walk: Walk, node: ir.Node) -> ir.Value | None:
    pads = walk.facts.ints(node.inputs[1])
    return node.inputs[0] if pads is not None and not any(pads) else None


@RULES.of("Concat")
def _concat(walk: Walk, node: ir.Node) -> ir.Value | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _unchanged(walk: Walk, node: ir.Node) -> ir.Value | None:
    """The input of a node that moves no elements, if it has the shape of the result."""
    shape = walk.facts.shape(node.inputs[0])
    return node.inputs[0] if shape is not None and shape == walk.facts.shape(node.outputs[0]) else None


# Arithmetic that does nothing, and operands that broadcasting makes larger anyway


@RULES.of("Add", "Sub")
def _add(walk: Walk, node: ir.Node) -> ir.Value | None:
    return _neutral(walk, node, 0) or _unexpanded(walk, node)


@RULES.of("Mul", "Div")
def _mul(walk: Walk, node: ir.Node) -> ir.Value | None:
    return _neutral(walk, node, 1) or _unexpanded(walk, node)


def _neutral(walk: Walk, node: ir.Node, number: int) -> ir.Value | None:
    """The other operand if one is a constant of zeros (of ones in a product) that does not make it larger."""
    result = walk.facts.shape(node.outputs[0])
    for place in (1,) if node.op_type in ("Sub", "Div") else (1, 0):
        value, other = node.inputs[place], node.inputs[1 - place]
        tensor = constant_tensor(value)
        if tensor is None or result is None or walk.facts.shape(other) != result or tensor.dtype.is_string():
            continue
        array = tensor.numpy()
        if array.size and array.flat[0] == number and (array == number).all():
            return other
    return None


@RULES.of("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Or", "Pow")
def _unexpanded(walk: Walk, node: ir.Node) -> ir.Value | None:
    """Reads what an Expand or a ConstantOfShape made larger before it did, beside an operand of the result's shape.

    Without such an operand, both sides would be made larger, which some engines cannot do.
    """
    facts = walk.facts
    result = facts.shape(node.outputs[0])
    for place, value in enumerate(node.inputs):
        source = _source(value, "Expand", "ConstantOfShape")
        others = [*node.inputs[:place], *node.inputs[place + 1 :]]
        if source is None or result is None or not any(facts.shape(other) == result for other in others):
            continue
        smaller = source.inputs[0] if source.op_type == "Expand" else _one_element(walk, source)
        shape = facts.shape(smaller)
        if shape is not None and broadcast(facts, shape, result) == result:
            node.replace_input_with(place, smaller)
    return None


def _one_element(walk: Walk, node: ir.Node) -> ir.Value | None:
    given = node.attributes.get("value")
    array = np.zeros(1, np.float32) if given is None else given.as_tensor().numpy()
    return walk.constant(array.reshape(())) if array.dtype.kind in "fib" else None


# Reshape and its like


@RULES.of(*_RESHAPING)
def _reshape(walk: Walk, node: ir.Node) -> ir.Value | None:
    same = _unchanged(walk, node)
    if same is not None:
        return same
    shape = walk.facts.shape(node.outputs[0])
    if shape is None:
        return None
    joined = _joined(walk, node, shape)
    if joined is None and node.op_type == "Reshape" and walk.facts.ints(node.inputs[1]) is None:
        target = _target(walk, node, walk.facts.shape(node.inputs[0]), shape)
        if target is not None:
            node.replace_input_with(1, walk.constant(target))
            node.attributes.pop("allowzero", None)
    return joined


def _joined(walk: Walk, node: ir.Node, shape: Shape) -> ir.Value | None:
    """One node for a Reshape or its like and the one before it, or for an Unsqueeze and a Gather."""
    inner = _source(node.inputs[0], *_RESHAPING)
    if inner is None or not walk.is_only_read_by(inner.outputs[0], node):
        return _unsqueezed_gather(walk, node) if node.op_type == "Unsqueeze" else None
    source = inner.inputs[0]
    before = walk.facts.shape(source)
    if before == shape:
        return source
    target = _target(walk, node, before, shape)
    return None if target is None else walk.node(node, "Reshape", [source, walk.constant(target)])


def _target(
    walk: Walk, node: ir.Node, before: Shape | None, shape: Shape
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """A constant target that gives the shape at every run, or fails where the node does; None if there is none.

    0 takes over the input's size at the same place. -1 is found from the others, which fails where one of them is 0.
    """
    if any(size == 0 for size in shape):
        return None
    open_places = [place for place, size in enumerate(shape) if not isinstance(size, int)]
    target = [size if isinstance(size, int) else 0 for size in shape]
    if len(open_places) == 1:
        target[open_places[0]] = -1
        return np.array(target, np.int64)
    moved = [p for p in open_places if before is None or p >= len(before) or before[p] != shape[p]]
    if len(moved) == 1:
        others = [shape[place] for place in open_places if place != moved[0]]
        if not all(at_least(size, 1) for size in others) and not _finds_a_size(walk, node):
            return None
        target[moved[0]] = -1
    return np.array(target, np.int64) if len(moved) <= 1 else None


def _finds_a_size(walk: Walk, node: ir.Node) -> bool:
    """Whether a node's own target has a -1, so that it fails itself if another size is 0."""
    if node.op_type != "Reshape" or node.attributes.get_int("allowzero", 0) == 1:
        return False  # with allowzero, onnxruntime finds the size all the same
    sizes = walk.facts.sizes(node.inputs[1])
    return sizes is not None and -1 in sizes


def _unsqueezed_gather(walk: Walk, node: ir.Node) -> ir.Value | None:
    """Unsqueeze(Gather(x, i)) on the axis of the Gather -> Gather(x, [i])."""
    gather, axes = _source(node.inputs[0], "Gather"), axes_of(walk.facts, node)
    if gather is None or axes is None or len(axes) != 1 or not walk.is_only_read_by(gather.outputs[0], node):
        return None
    shape, places = walk.facts.shape(gather.inputs[0]), walk.facts.ints(gather.inputs[1])
    if shape is None or places is None or walk.facts.shape(gather.inputs[1]) != ():
        return None
    axis = gather.attributes.get_int("axis", 0) % len(shape)
    if axes[0] % len(shape) != axis:
        return None
    return walk.node(node, "Gather", [gather.inputs[0], walk.constant(np.array(places, np.int64))], {"axis": axis})


# Transpose and Slice


@RULES.of("Transpose")
def _transpose(walk: Walk, node: ir.Node) -> ir.Value | None:
    shape = walk.facts.shape(node.inputs[0])
    if shape is None:
        return None
    order = order_of(node, len(shape))
    if order == tuple(range(len(shape))):
        return node.inputs[0]
    inner = _source(node.inputs[0], "Transpose")
    if inner is None:
        return None
    first = order_of(inner, len(shape))
    both = tuple(first[place] for place in order)
    if both == tuple(range(len(shape))):
        return inner.inputs[0]
    if not walk.is_only_read_by(inner.outputs[0], node):
        return None
    return walk.node(node, "Transpose", [inner.inputs[0]], {"perm": both})


@RULES.of("Slice")
def _slice(walk: Walk, node: ir.Node) -> ir.Value | None:
    shape, cuts = walk.facts.shape(node.inputs[0]), cuts_of(walk.facts, node)
    if shape is None or cuts is None:
        return None
    kept = [cut for cut in cuts if not (cut[3] == 1 and cut_length(shape[cut[0]], *cut[1:]) == shape[cut[0]])]
    if not kept:
        return node.inputs[0]
    fixed: list[tuple[int, int, int, int]] = []
    for axis, start, end, step in kept:
        end = _end(shape[axis], end, step)
        if not isinstance(start, int) or not isinstance(end, int):
            return None
        fixed.append((axis, start, end, step))
    source = node.inputs[0]
    inner = _source(source, "Slice")
    if inner is not None and walk.is_only_read_by(inner.outputs[0], node):
        first = cuts_of(walk.facts, inner) or []
        others = [(a, s, e, t) for a, s, e, t in first if isinstance(s, int) and isinstance(e, int)]
        if len(others) == len(first) and not {cut[0] for cut in first} & {cut[0] for cut in fixed}:
            fixed, source = [*others, *fixed], inner.inputs[0] if first else source
    is_as_before = source is node.inputs[0] and len(fixed) == len(cuts)
    if is_as_before and all(walk.facts.ints(value) is not None for value in node.inputs[1:] if value is not None):
        return None
    columns = [list(column) for column in zip(*sorted(fixed), strict=True)]
    starts, ends, axes, steps = (walk.constant(np.array(columns[place], np.int64)) for place in (1, 2, 0, 3))
    needs_steps = any(step != 1 for step in columns[3])
    return walk.node(node, "Slice", [source, starts, ends, axes, *([steps] if needs_steps else [])])


def _end(size: Size, end: Size, step: int) -> Size:
    """An end that lies at the axis' end or beyond it, as the same number for every size."""
    if isinstance(end, int) or step < 1:
        return end
    order = compare(end, size)
    return _TO_THE_END if order is not None and order >= 0 else end


# Where


def _chosen(walk: Walk, node: ir.Node) -> ir.Value | None:
    """The side that a condition known beforehand takes."""
    tests = walk.facts.ints(node.inputs[0])
    if tests is None or len(set(tests)) != 1:
        return None
    value: ir.Value | None = node.inputs[1 if tests[0] else 2]
    shape = walk.facts.shape(value)
    return value if shape is not None and shape == walk.facts.shape(node.outputs[0]) else None


RULES["ScatterND"] = written_box


@RULES.of("Where")
def _where(walk: Walk, node: ir.Node) -> ir.Value | None:
    return _chosen(walk, node) or _unexpanded(walk, node)
