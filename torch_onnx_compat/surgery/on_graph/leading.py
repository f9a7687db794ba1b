"""Finds the preprocessing at the beginning of a graph.

A node belongs to the preprocessing if it is arithmetic with constants, a change of type, order, size or layout, or a
computation on sizes, and reads only the input, constants and other such nodes. The preprocessing ends at the last value
that

* is like the input or like a picture: of the input's rank, or of one more, with at most 4 channels or the input's, and
* is the only value of these nodes that the rest of the graph reads: the host then has to pass this value only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from torch_onnx_compat.graph.excerpt import ancestors, is_constant, operands_of
from torch_onnx_compat.graph.provenance import place

ARITHMETIC = frozenset(
    {"Add", "Sub", "Mul", "Div", "Neg", "Pow", "Sqrt", "Abs", "Clip", "Min", "Max", "Floor", "Round"}
)
"""Arithmetic between a picture and constants, or between channels of a picture."""
ARRANGING = frozenset(
    {"Transpose", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Concat", "Split", "Gather", "Slice"}
    | {"Identity", "Cast", "ScatterND", "ScatterElements", "Tile", "GatherND"}
)
GEOMETRY = frozenset({"Pad", "Resize"})
SIZES = frozenset(
    {"Shape", "Size", "Range", "ConstantOfShape", "Equal", "Where", "Not", "And", "Or", "Less", "Greater", "Mod"}
    | {"ReduceMin", "ReduceMax", "ReduceProd", "Ceil", "CastLike", "LessOrEqual", "GreaterOrEqual", "Reciprocal"}
)
"""Operators on integers that are computed from shapes."""

_CHANNELS = 4
"""Most channels of a picture: three colours and the opacity."""


@dataclass(frozen=True)
class Leading:
    """The preprocessing of one input.

    Attributes:
        source: The input.
        end: The preprocessed value; None if there is nothing to move.
        nodes: The nodes of the preprocessing, in order.
        reason: Why there is nothing to move; empty if there is.
    """

    source: ir.Value
    end: ir.Value | None = None
    nodes: tuple[ir.Node, ...] = ()
    reason: str = ""


def find_leading(model: ir.Model, source: ir.Value) -> Leading:
    """The preprocessing of one input."""
    region = leading_nodes(model, source)
    work = [node for node in region if node.op_type in ARITHMETIC | GEOMETRY | ARRANGING - {"Identity", "Cast"}]
    work = [node for node in work if _is_picture(source, node.outputs[0])]
    if not work:
        return Leading(source, reason=f"nothing is done to it before {_readers(source, set())}")
    inside = set(region)
    for node in reversed(region):
        end = node.outputs[0]
        if len(node.outputs) == 1 and _looks_alike(source, end) and _is_only_way(model, source, end, inside):
            before = ancestors([end])
            if not before.isdisjoint(work):
                return Leading(source, end, tuple(n for n in region if n in before))
    return Leading(source, reason=_why_not(source, work, inside))


def leading_nodes(model: ir.Model, source: ir.Value) -> list[ir.Node]:
    """The nodes that may be preprocessing: they depend on this input only, and are of the kinds above.

    Nodes that depend on constants only are left out.
    """
    known = {id(source)}
    fixed: set[int] = set()
    region = []
    for node in model.graph:
        values = [v for v in operands_of(node) if not is_constant(v) and id(v) not in fixed]
        if not values:
            fixed.update(id(output) for output in node.outputs)
        elif all(id(v) in known for v in values) and _is_movable(node, source):
            region.append(node)
            known.update(id(output) for output in node.outputs)
    return region


def _is_movable(node: ir.Node, source: ir.Value) -> bool:
    if node.domain:
        return False
    first = node.inputs[0] if node.inputs else None
    if node.op_type in SIZES or _is_size(node):
        return True
    if node.op_type in GEOMETRY:
        return True
    if node.op_type in ("ReduceSum", "ReduceMean"):  # to grey: the sum or mean of the channels
        return _sums_channels(node)
    if node.op_type in ARITHMETIC:
        return all(_is_small(value) for value in node.inputs if value is not None and _is_fixed(value))
    if node.op_type not in ARRANGING or first is None:
        return False
    if node.op_type in ("Gather", "GatherND"):  # from the picture, not from a table such as an embedding
        return not is_constant(first)
    return node.op_type != "Slice" or _is_crop(node)


def _is_size(node: ir.Node) -> bool:
    """Whether a node computes with sizes: all its values have rank 0 or 1."""
    if node.op_type not in ARITHMETIC | ARRANGING:
        return False
    shapes = [value.shape for value in (*node.inputs, *node.outputs) if value is not None]
    return all(shape is not None and len(shape) <= 1 for shape in shapes)


def _is_small(value: ir.Value) -> bool:
    """Whether a constant is one number, or one for each channel: at most one axis is longer than 1."""
    tensor = ir.convenience.get_const_tensor(value)
    shape = value.shape if tensor is None else tensor.shape
    return shape is not None and sum(size != 1 for size in shape) <= 1


def _is_fixed(value: ir.Value) -> bool:
    """Whether a value is a constant, or computed from constants alone."""
    return is_constant(value) or (
        not value.is_graph_input()
        and not any(v.is_graph_input() for node in ancestors([value]) for v in operands_of(node))
    )


def _sums_channels(node: ir.Node) -> bool:
    axes = ir.convenience.get_const_tensor(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    numbers = axes.numpy().tolist() if axes is not None else node.attributes.get_ints("axes", ())
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    return len(numbers) == 1 and shape is not None and len(shape) >= 3 and numbers[0] in (-3, len(shape) - 3)


def _is_crop(node: ir.Node) -> bool:
    """Whether a Slice has steps of 1 or -1 only; larger steps are a network's own, such as YOLO's Focus."""
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return True
    steps = ir.convenience.get_const_tensor(node.inputs[4])
    return steps is not None and all(step in (1, -1) for step in steps.numpy().reshape(-1))


def _is_picture(source: ir.Value, value: ir.Value) -> bool:
    """Whether a value has the rank of a picture, not of a number that is computed from sizes."""
    return value.shape is None or source.shape is None or len(value.shape) >= min(len(source.shape), 2)


def _looks_alike(source: ir.Value, value: ir.Value) -> bool:
    if source.shape is None or value.shape is None:
        return False
    rank = len(source.shape)
    if len(value.shape) not in (rank, rank + 1) or rank < 2:
        return False
    if len(value.shape) < 3:
        return True
    channels = value.shape[-3]
    return not isinstance(channels, int) or channels <= _CHANNELS or channels in tuple(source.shape)


def _is_only_way(model: ir.Model, source: ir.Value, end: ir.Value, inside: set[ir.Node]) -> bool:
    """Whether the rest of the graph reads no value of the preprocessing but its end."""
    before = ancestors([end]) & inside
    same_batch = source.shape is not None and end.shape is not None and source.shape[0] == end.shape[0]
    before |= {node for node in inside if same_batch and asks_batch(node)}
    values = [source, *(v for node in before if not asks_batch(node) for v in node.outputs if v is not end)]
    return not any(_is_read_elsewhere(model, value, before) for value in values)


def asks_batch(node: ir.Node) -> bool:
    """Whether a node is the Shape of axis 0 alone, which can be read from the preprocessed value as well."""
    limits = [node.attributes.get_int(name, default) for name, default in (("start", 0), ("end", -1))]
    return node.op_type == "Shape" and not node.domain and limits == [0, 1]


def _is_read_elsewhere(model: ir.Model, value: ir.Value, before: set[ir.Node]) -> bool:
    if any(output is value for output in model.graph.outputs):
        return True
    return any(user not in before for user, _ in value.uses())


def _why_not(source: ir.Value, work: Sequence[ir.Node], inside: set[ir.Node]) -> str:
    values = [source, *(output for node in work for output in node.outputs)]
    found = {}
    for value in values:
        text = _readers(value, inside)
        if text:
            found[value.name] = text
    return f"the network reads it at several stages of preparation: {'; '.join(list(found.values())[:3])}"


def _readers(value: ir.Value, inside: set[ir.Node]) -> str:
    users = [user for user, _ in value.uses() if user not in inside]
    return ", ".join(dict.fromkeys(f"{user.op_type} at {place(user)}" for user in users[:3]))
