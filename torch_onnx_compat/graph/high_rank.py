"""Writes what is computed on tensors of more than four axes with fewer axes, for targets that do not take as many.

A tensor of many axes is held in any shape that has its elements in order. A Reshape of it is nothing then; an operator
along one axis takes the axes before it as one, and those after it; an elementwise operator takes axes as one that are
broadcast together; a Transpose moves blocks of axes, and waits for what is selected of its result. What lies between
two tensors of few axes is written so as a whole, or not at all. The rules stand in rules_high_rank.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.obstacle import Refused
from torch_onnx_compat.graph.reordering import LOW, Sizes, reordered, viewed
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.walk import all_nodes


@dataclass(frozen=True)
class Held:
    """The elements of a tensor of many axes.

    Args:
        value: Has them, in whatever shape.
        sizes: Of the axes that are in order in `value`.
        perm: The order of these axes in the tensor; None if it is theirs.
    """

    value: ir.Value
    sizes: tuple[int | None, ...] = ()
    perm: tuple[int, ...] | None = None


class View:
    """What a rule asks for the inputs of its node."""

    def __init__(self, op: Builder, held: dict[ir.Value, Held]) -> None:
        self._op = op
        self._held = held

    def held(self, value: ir.Value) -> Held:
        """A value as it is held."""
        if not is_high(value):
            return Held(value)
        numbers = self._op.numbers(value)
        if numbers is not None:
            return Held(self._op.constant(numbers.reshape(-1), self._op.dtype(value)))
        if value not in self._held:
            raise Refused(f"{value.name!r} comes from elsewhere")
        return self._held[value]

    def elements(self, value: ir.Value) -> ir.Value:
        """A value's elements in order, in whatever shape."""
        held = self.held(value)
        if held.perm is not None:
            held = Held(reordered(self._op, held.value, held.sizes, held.perm))
            self._held[value] = held
        return held.value

    def few(self, value: ir.Value, sizes: Sizes) -> ir.Value:
        """An output that was just written, in its own shape."""
        held = self._held.pop(value)
        if held.perm is not None:
            held = Held(reordered(self._op, held.value, held.sizes, held.perm))
        return viewed(self._op, held.value, sizes)

    def __call__(self, value: ir.Value, sizes: Sizes) -> ir.Value:
        """A value in a shape of few axes, of which one size may be unknown."""
        if len(sizes) > LOW or sum(size is None for size in sizes) > 1:
            raise Refused("too many axes, or unknown sizes")
        numbers = self._op.numbers(value) if is_high(value) else None
        if numbers is not None:
            shape = [-1 if size is None else size for size in sizes]
            return self._op.constant(numbers.reshape(shape), self._op.dtype(value))
        return viewed(self._op, self.elements(value), sizes)


Rule: TypeAlias = "Callable[[Builder, ir.Node, View], Sequence[ir.Value | Held] | None]"
RULES: dict[str, Rule] = {}


def few_axes(*op_types: str) -> Callable[[Rule], Rule]:
    """Registers how operators are computed with few axes.

    The function gets the Builder, the node and a View. It returns for each output a value with the same elements in the
    same order, whatever its shape, or None where it does not know how.
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
    from torch_onnx_compat.graph import rules_high_rank  # noqa: F401 - they register themselves

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
            if value is None or not is_high(value) or constant_tensor(value) is not None:
                continue
            other = part_of[leader.setdefault(value, node)]
            if other is not part:
                other += part
                part_of.update(dict.fromkeys(part, other))
                part = other
    order = {node: index for index, node in enumerate(touching)}
    for part in {id(part): part for part in part_of.values()}.values():
        yield sorted(part, key=order.__getitem__)


class _Part:
    """One part of the graph, while it is rewritten."""

    def __init__(self, scope: Scope, nodes: Sequence[ir.Node], opset: int) -> None:
        self._nodes = nodes
        self._builders = [Builder(scope, node, opset) for node in nodes]
        self._held: dict[ir.Value, Held] = {}

    def rewrite(self, is_bad: Callable[[ir.Node], bool]) -> bool:
        """Whether it was rewritten: with rules for every node, and nothing bad in the place of what was."""
        if len({id(node.graph) for node in self._nodes}) > 1:
            return False
        found: list[list[ir.Value]] = []
        try:
            for node, op in zip(self._nodes, self._builders, strict=True):
                found.append(self._written(op, node))
        except Refused:
            return self._give_up()
        if any(is_bad(new) for op in self._builders for new in op.nodes):
            return self._give_up()
        self._put(found)
        return True

    def _put(self, found: Sequence[Sequence[ir.Value]]) -> None:
        for node, op, outputs in zip(self._nodes, self._builders, found, strict=True):
            assert node.graph is not None
            if any(is_high(value) for value in node.outputs):
                node.graph.insert_before(node, op.nodes)
            else:
                replace(node, op, outputs)
        for node in reversed(self._nodes):
            if node.graph is not None:
                node.graph.remove(node, safe=True)

    def _give_up(self) -> bool:
        """Takes back the uses of the graph's values by new nodes."""
        for node in (new for op in self._builders for new in op.nodes):
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
        return False

    def _written(self, op: Builder, node: ir.Node) -> list[ir.Value]:
        """What becomes of the outputs that have few axes; the others are held."""
        rule = RULES.get(node.op_type) if not node.domain else None
        view = View(op, self._held)
        outputs = rule(op, node, view) if rule is not None else None
        if outputs is None:
            raise Refused(f"this {node.op_type} has no form of few axes")
        written = []
        for old, new in zip(node.outputs, outputs, strict=True):
            if is_high(old) and old.is_graph_output():
                raise Refused(f"{old.name!r} is an output")
            self._held[old] = new if isinstance(new, Held) else Held(new)
            if not is_high(old):
                written.append(view.few(old, sizes_of(old)))
        return written
