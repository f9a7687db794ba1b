"""Computes tensors of more than four axes with fewer axes, for targets that limit the rank.

Such a tensor becomes a flat tensor. A Reshape of a flat tensor computes nothing. An operator along one axis merges the
axes before it into one, and the axes after it into one. An elementwise operator merges axes that broadcast alike. A
Transpose moves blocks of axes; it is deferred, so that a selection from its result is made before it.

All nodes between two tensors of few axes are rewritten, or none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import onnx_ir as ir

from torch_onnx_compat.graph.adapt import high_rank_rules  # noqa: F401 - the rules register themselves
from torch_onnx_compat.graph.adapt.flat_tensor import RULES, FlatTensor, View, is_high, sizes_of
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.obstacle import Refusal
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.walk import all_nodes


def lower_ranks(model: ir.Model, is_bad: Callable[[ir.Node], bool]) -> int:
    """Rewrites each part of the graph that holds tensors of many axes and a bad node, in place.

    Args:
        model: The model, with shapes; a part whose rules need an unknown size stays as it is.
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


def _parts(model: ir.Model) -> Iterator[list[ir.Node]]:
    """The groups of nodes that tensors of many axes connect, each in the order of the graph."""
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
        self._flat: dict[ir.Value, FlatTensor] = {}

    def rewrite(self, is_bad: Callable[[ir.Node], bool]) -> bool:
        """Rewrites the part; returns whether each node has a rule and the target runs all new nodes."""
        if len({id(node.graph) for node in self._nodes}) > 1:
            return False
        found: list[list[ir.Value]] = []
        try:
            for node, op in zip(self._nodes, self._builders, strict=True):
                found.append(self._write_node(op, node))
        except Refusal:
            return self._give_up()
        if any(is_bad(new) for op in self._builders for new in op.nodes):
            return self._give_up()
        self._insert_nodes(found)
        return True

    def _insert_nodes(self, found: Sequence[Sequence[ir.Value]]) -> None:
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
        """Detaches the new nodes from the graph's values, which would count them as users."""
        for node in (new for op in self._builders for new in op.nodes):
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
        return False

    def _write_node(self, op: Builder, node: ir.Node) -> list[ir.Value]:
        """Writes one node with few axes; returns its outputs of few axes. The other outputs become flat tensors."""
        rule = RULES.get(node.op_type) if not node.domain else None
        view = View(op, self._flat)
        outputs = rule(op, node, view) if rule is not None else None
        if outputs is None:
            raise Refusal(f"this {node.op_type} has no form of few axes")
        written = []
        for old, new in zip(node.outputs, outputs, strict=True):
            if is_high(old) and old.is_graph_output():
                raise Refusal(f"{old.name!r} is an output")
            self._flat[old] = new if isinstance(new, FlatTensor) else FlatTensor(new)
            if not is_high(old):
                written.append(view.in_own_shape(old, sizes_of(old)))
        return written
