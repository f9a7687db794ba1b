"""The walk through a graph on which what is known of sizes is found, and nodes are rewritten with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.builder import Scope
from torch_onnx_compat.graph.slim.facts import Facts, Numbers
from torch_onnx_compat.graph.slim.infer import infer
from torch_onnx_compat.graph.slim.size import Polynomial
from torch_onnx_compat.graph.walk import inner_graphs

Known = dict[Any, ir.Value]
"""Values whose numbers depend on the run, by type, shape and numbers."""


class Walk:
    """One walk through a graph: what is known so far, and how a rule changes the graph.

    Args:
        facts: What is known of the values.
        scope: Makes constants; None in a function, which has no initializers.
        rules: What rewrites a node, by operator.
    """

    def __init__(
        self, facts: Facts, scope: Scope | None, rules: Mapping[str, Callable[[Walk, ir.Node], ir.Value | None]]
    ) -> None:
        self.facts = facts
        self._scope = scope
        self._rules = rules
        self._start: ir.Graph | None = None
        self._made = 0

    def through(self, graph: ir.Graph, known: Known, *, is_main: bool) -> None:
        """Rewrites the nodes of a graph, and of those inside it, in order."""
        if self._start is None:
            self._start = graph
        self.facts.begin(graph, is_main=is_main)
        for node in graph:
            if node.op_type == "Constant" and not node.domain:
                continue
            for inner in inner_graphs(node):
                self.through(inner, dict(known), is_main=False)
            infer(self.facts, node)
            self._rewrite(node, known)

    def _rewrite(self, node: ir.Node, known: Known) -> None:
        if node.domain or not node.outputs:
            return
        numbers = self.facts.numbers(node.outputs[0])
        if numbers is not None and len(node.outputs) == 1:
            found = self._same_numbers(node, numbers, known)
            if found is not None:
                self.replace(node.outputs[0], found)
                return
        rule = self._rules.get(node.op_type)
        found = None if rule is None else rule(self, node)
        if found is not None:
            self.replace(node.outputs[0], found)

    def _same_numbers(self, node: ir.Node, numbers: Numbers, known: Known) -> ir.Value | None:
        """A constant, or an earlier value with the same numbers."""
        value = node.outputs[0]
        dtype = self.facts.dtype(value)
        if dtype is None:
            return None
        flat = numbers.reshape(-1).tolist()
        if not any(isinstance(number, Polynomial) for number in flat):
            return self.constant(np.asarray(numbers.tolist(), dtype.numpy()).reshape(numbers.shape))
        earlier = known.setdefault((dtype, numbers.shape, tuple(flat)), value)
        return None if earlier is value else earlier

    def constant(self, array: Any) -> ir.Value:
        """A constant that every node here can read."""
        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        if self._scope is not None:
            return self._scope.constant(array)
        assert self._start is not None
        node = ir.node("Constant", [], {"value": ir.tensor(array)})
        self._start.insert_before(self._start[0], node)
        return node.outputs[0]

    def node(
        self, before: ir.Node, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any] = {}
    ) -> ir.Value:
        """A new node's result; the node stands before another, from which it takes its origin."""
        made = ir.node(op_type, inputs, dict(attributes), name=before.name and self._unique(f"{before.name}_{op_type}"))
        made.metadata_props.update(before.metadata_props)
        graph = before.graph
        assert graph is not None
        value, old = made.outputs[0], before.outputs[0]
        value.name = self._unique(f"{old.name}_{op_type}")
        value.type = old.type
        graph.insert_before(before, made)
        infer(self.facts, made)
        return value

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Lets all that read a value read another; an output of a graph becomes an Identity."""
        if new is old:
            return
        for user, index in tuple(old.uses()):
            user.replace_input_with(index, new)
        if old.is_graph_output():
            node = old.producer()
            assert node is not None
            assert node.graph is not None
            if node.op_type == "Identity" and node.inputs[0] is new:
                return
            result = self.node(node, "Identity", [new])
            result.shape = old.shape
            result.name, old.name = old.name, result.name
            for index, output in enumerate(node.graph.outputs):
                if output is old:
                    node.graph.outputs[index] = result

    def _unique(self, stem: str) -> str:
        """A name that nothing else in the graph has; in a function, which has names of its own, likely so."""
        if self._scope is not None:
            return self._scope.unique_name(stem)
        self._made += 1
        return f"{stem}_{self._made}"

    def is_only_read_by(self, value: ir.Value, node: ir.Node) -> bool:
        """Whether nothing but this node reads a value."""
        return not value.is_graph_output() and all(use.node is node for use in value.uses())
