"""Writes what is computed on tensors of more than four axes with fewer axes, for targets that do not take as many.

A tensor of many axes is held in any shape that has its elements in order. A Reshape of it is nothing then; an operator
along one axis takes the axes before it as one, and those after it; an elementwise operator takes axes as one that are
broadcast together; a Transpose moves blocks of axes. What lies between two tensors of few axes is written so as a
whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.lowering import attribute, input_at
from torch_onnx_compat.graph.obstacle import Refused
from torch_onnx_compat.graph.reordering import LOW, Sizes, product, reordered, viewed
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.walk import all_nodes

View: TypeAlias = "Callable[[ir.Value, Sizes | None], ir.Value]"
"""A value in a shape of few axes; in whatever shape it is held where that is None."""
Rule: TypeAlias = "Callable[[Builder, ir.Node, View], Sequence[ir.Value] | None]"
RULES: dict[str, Rule] = {}


def few_axes(*op_types: str) -> Callable[[Rule], Rule]:
    """Registers how operators are computed with few axes.

    The function gets the Builder, the node and a function that views values in shapes of few axes. It returns for each
    output a value with the same elements in the same order, whatever its shape, or None where it does not know how.
    """

    def decorate(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return decorate


def lower_ranks(model: ir.Model, is_bad: Callable[[ir.Node], bool]) -> int:
    """Rewrites each part of the graph that holds tensors of many axes and a bad node, in place.

    Args:
        model: The model, with shapes; what rewriting does not know the sizes of stays.
        is_bad: Whether the target does not run a node right.

    Returns:
        How many parts were rewritten.
    """
    count = 0
    scope = Scope(model)
    for part in list(_parts(model)):
        if any(is_bad(node) for node in part):
            count += _Part(scope, part, model.opset_imports[""]).rewrite(is_bad)
    return count


def sizes_of(value: ir.Value) -> list[int | None]:
    """The sizes of a value's axes.

    Raises:
        Refused: Its rank is unknown.
    """
    if value.shape is None:
        raise Refused(f"the rank of {value.name!r} is unknown")
    return [size if isinstance(size, int) else None for size in value.shape]


def is_high(value: ir.Value | None) -> bool:
    """Whether a value has more axes than every engine takes."""
    return value is not None and value.shape is not None and len(value.shape) > LOW


def _parts(model: ir.Model) -> Iterator[list[ir.Node]]:
    """The nodes that tensors of many axes connect, in the order of the graph."""
    touching = [n for n in all_nodes(model.graph) if any(is_high(v) for v in (*n.inputs, *n.outputs))]
    leader: dict[ir.Value, ir.Node] = {}
    part_of: dict[ir.Node, list[ir.Node]] = {}
    for node in touching:
        part = part_of.setdefault(node, [node])
        for value in (*node.inputs, *node.outputs):
            if value is None or not is_high(value) or _is_constant(value):
                continue
            other = part_of[leader.setdefault(value, node)]
            if other is not part:
                other += part
                part_of.update(dict.fromkeys(part, other))
                part = other
    order = {node: index for index, node in enumerate(touching)}
    for part in {id(part): part for part in part_of.values()}.values():
        yield sorted(part, key=order.__getitem__)


def _is_constant(value: ir.Value) -> bool:
    return not value.is_graph_input() and ir.convenience.get_const_tensor(value) is not None


class _Part:
    """One part of the graph, while it is rewritten."""

    def __init__(self, scope: Scope, nodes: Sequence[ir.Node], opset: int) -> None:
        self._nodes = nodes
        self._builders = [Builder(scope, node, opset) for node in nodes]
        self._held: dict[ir.Value, ir.Value] = {}

    def rewrite(self, is_bad: Callable[[ir.Node], bool]) -> bool:
        """Whether it was rewritten: with rules for every node, and nothing bad in the place of what was."""
        found: list[list[ir.Value]] = []
        try:
            for node, op in zip(self._nodes, self._builders, strict=True):
                found.append(self._written(op, node))
        except Refused:
            return self._give_up()
        if any(is_bad(new) for op in self._builders for new in op.nodes):
            return self._give_up()
        for node, op, outputs in zip(self._nodes, self._builders, found, strict=True):
            if not any(is_high(value) for value in node.outputs):
                replace(node, op, outputs)
            elif node.graph is not None:
                node.graph.insert_before(node, op.nodes)
        for node in reversed(self._nodes):
            if node.graph is not None:
                node.graph.remove(node, safe=True)
        return True

    def _give_up(self) -> bool:
        """Takes back the uses of the graph's values by new nodes."""
        for node in (new for op in self._builders for new in op.nodes):
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
        return False

    def _written(self, op: Builder, node: ir.Node) -> list[ir.Value]:
        rule = RULES.get(node.op_type) if not node.domain else None
        if rule is None:
            raise Refused(f"{node.op_type} has no form of few axes")
        outputs = rule(op, node, lambda value, sizes: self._view(op, value, sizes))
        if outputs is None:
            raise Refused(f"this {node.op_type} has no form of few axes")
        written = []
        for old, new in zip(node.outputs, outputs, strict=True):
            if is_high(old):
                if old.is_graph_output():
                    raise Refused(f"{old.name!r} is an output")
                self._held[old] = new
                written.append(new)
            else:
                written.append(viewed(op, new, sizes_of(old)))
        return written

    def _view(self, op: Builder, value: ir.Value, sizes: Sizes | None) -> ir.Value:
        if sizes is not None and (len(sizes) > LOW or sum(size is None for size in sizes) > 1):
            raise Refused("too many axes, or unknown sizes")
        numbers = op.numbers(value) if is_high(value) else None
        if numbers is not None:
            shape = [-1] if sizes is None else [-1 if size is None else size for size in sizes]
            return op.constant(numbers.reshape(shape), op.dtype(value))
        if is_high(value) and value not in self._held:
            raise Refused(f"{value.name!r} comes from elsewhere")
        held = self._held.get(value, value)
        return held if sizes is None else viewed(op, held, sizes)


def _x(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def _around(sizes: Sizes, axis: int) -> list[int | None]:
    """The axes before one, it, and the axes after it."""
    axis %= len(sizes)
    return [product(sizes[:axis]), sizes[axis], product(sizes[axis + 1 :])]


@few_axes("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
def same_elements(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Takes them as they are."""
    return [view(_x(node), None)]


@few_axes("Transpose")
def transpose(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Moves blocks of axes."""
    x = _x(node)
    sizes = sizes_of(x)
    perm = attribute(node, "perm") or list(reversed(range(len(sizes))))
    moved = reordered(op, view(x, None), sizes, perm)
    return None if moved is None else [moved]


@few_axes("Gather", "Slice", "Split", "Softmax", "LogSoftmax")
def along_one_axis(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Takes the axes before it as one, and those after it."""
    x = _x(node)
    sizes, axis = sizes_of(x), _axis(op, node)
    if axis is None:
        return None
    outer, size, inner = _around(sizes, axis)
    # With a batch of one in front, which some engines take the first axis for.
    shape = [1, size, inner] if outer == 1 else [1, outer, size] if inner == 1 else [1, outer, size, inner]
    place = 1 if outer == 1 else 2
    whole = view(x, shape)
    if node.op_type == "Slice":
        steps = input_at(node, 4)
        return [op.Slice(whole, node.inputs[1], node.inputs[2], [place], *([steps] if steps is not None else []))]
    if node.op_type == "Gather":
        index = op.numbers(node.inputs[1]) if node.inputs[1] is not None else None
        if index is not None and index.size == 1 and size is not None:
            at = int(index.reshape(())) % size
            return [op.Slice(whole, [at], [at + 1], [place])]
    return op.again(node, [whole, *node.inputs[1:]], axis=place)


def _axis(op: Builder, node: ir.Node) -> int | None:
    if node.op_type in ("Softmax", "LogSoftmax"):
        return int(attribute(node, "axis", -1)) if op.opset >= 13 else None
    if node.op_type != "Slice":
        return int(attribute(node, "axis", 0))
    axes = op.numbers(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    return int(axes.reshape(-1)[0]) if axes is not None and axes.size == 1 else None


@few_axes("Concat")
def concat(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Takes the axes before it as one, and those after it."""
    axis = attribute(node, "axis")
    return [op.node("Concat", [view(v, _around(sizes_of(v), axis)) for v in node.inputs if v], {"axis": 1})[0]]


@few_axes("LayerNormalization")
def layer_normalization(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Takes the axes before the last as one."""
    sizes = sizes_of(_x(node))
    if attribute(node, "axis", -1) % len(sizes) != len(sizes) - 1 or len(node.outputs) > 1:
        return None
    return op.again(node, [view(_x(node), [1, product(sizes[:-1]), sizes[-1]]), *node.inputs[1:]], axis=-1)


_OF_ONE = ("Abs", "Ceil", "Clip", "Cast", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu")
_OF_ONE += ("Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Softplus", "Sqrt", "Tanh")


@few_axes(*_OF_ONE)
def of_one(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Takes the axes before the last as one."""
    sizes = sizes_of(_x(node))
    return op.again(node, [view(_x(node), [1, product(sizes[:-1]), sizes[-1]]), *node.inputs[1:]])


@few_axes("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "Greater", "Where")
def elementwise(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Takes neighbouring axes as one where each input has all of them, or repeats its only cell over all of them."""
    values = [value for value in node.inputs if value is not None]
    merged = _merged([sizes_of(value) for value in values], sizes_of(node.outputs[0]))
    if merged is None:
        return None
    return op.again(node, [view(v, shape) for v, shape in zip(values, merged, strict=True)])


@few_axes("MatMul")
def matmul(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Takes neighbouring axes before the last two as one, as elementwise operators do."""
    values = [value for value in node.inputs if value is not None]
    sizes = [sizes_of(value) for value in values]
    if any(len(of) < 2 for of in sizes):
        return None
    if len(sizes[1]) == 2:
        inner = sizes[0][-1]
        return [op.MatMul(view(values[0], [1, product(sizes[0][:-1]), inner]), values[1])]
    merged = _merged([of[:-2] for of in sizes], sizes_of(node.outputs[0])[:-2])
    if merged is None:
        return None
    return [op.MatMul(*(view(v, [*a, *of[-2:]]) for v, a, of in zip(values, merged, sizes, strict=True)))]


def _merged(inputs: Sequence[Sizes], result: Sizes) -> list[list[int | None]] | None:
    """Shapes of the inputs with as few axes as broadcasting leaves; None where unknown sizes hide how it goes."""
    padded = [[1] * (len(result) - len(sizes)) + list(sizes) for sizes in inputs]
    merged: list[list[int | None]] = [[] for _ in inputs]
    last: tuple[bool, ...] | None = None
    for axis, size in enumerate(result):
        of = [sizes[axis] for sizes in padded]
        if size == 1:
            continue
        if size is None and any(s is not None and s != 1 for s in of):
            return None
        held = tuple(s != 1 for s in of)
        for shape, s in zip(merged, of, strict=True):
            if held == last:
                shape[-1] = product([shape[-1], s])
            else:
                shape.append(s)
        last = held
    rank = max(map(len, merged))
    return [shape if rank else [1] for shape in merged]
