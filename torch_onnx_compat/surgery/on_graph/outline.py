"""Outlining: replaces a part of a graph by one node, a call of a function in the model or an operator of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.excerpt import ancestors, excerpt, is_constant, operands_of
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.surgery.around_model.custom import WholeCall

MIN_IR_VERSION = 8
"""The first IR version whose models hold functions."""

SMALL = 64
"""Most elements of an integer constant that is a parameter of an operator (a shape, axes), not a weight."""


class Outlining:
    """Replaces parts of a graph by nodes, and adds the functions that define these nodes to the model.

    Attributes:
        without_body: The functions that are needed to check the file, and are not written to it.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._replacements: dict[int, ir.Value] = {}
        self._bodies: dict[tuple[str, str], dict[bytes, str]] = {}
        self.without_body: list[Any] = []

    def outline(self, call: WholeCall, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> None:
        """Replaces the part of the graph between some values by one node.

        Args:
            call: The call that the node stands for.
            inputs: The node's inputs.
            outputs: The values that the node replaces.

        Raises:
            CompatError: The outputs do not depend on the inputs, or are inside a branch or loop.
        """
        model = self._model
        if model.ir_version < MIN_IR_VERSION:
            raise CompatError(
                f"keep_as_function: the target's files are of IR version {model.ir_version}, and functions came with "
                f"version {MIN_IR_VERSION}; choose opset_version=15 or later, or another target."
            )
        inputs, outputs = (_deduplicate(map(self._resolve, values)) for values in (inputs, outputs))
        outputs = [v for v in outputs if v.graph is not None]  # the others are read by nothing, as an LSTM's last cell
        if not outputs or any(v.graph is not model.graph for v in (*inputs, *outputs)):
            raise CompatError(
                f"keep_as_function: {call.path!r} is called in a branch or loop of the file, or nothing reads what it "
                f"returns."
            )
        extra = self._find_extra_inputs(call, inputs, outputs)
        part = excerpt(model, [*inputs, *extra], outputs, call.op_type)
        weights = [model.graph.initializers[name] for name in part.graph.initializers if _is_weight(part, name)]
        name = self._add_function(call, part, [str(w.name) for w in weights])
        node = ir.Node(
            call.domain,
            name,
            [*inputs, *extra, *weights],
            ir.convenience.convert_attributes(dict(call.attributes)),
            num_outputs=len(outputs),
            name="_".join([call.path, *([str(call.outputs.call)] if call.outputs.call else [])]),
        )
        model.graph.append(node)
        for old, new in zip(outputs, node.outputs, strict=True):
            new.name, new.shape, new.type = old.name, old.shape, old.type
            ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
            old.name = None
            self._replacements[id(old)] = new
        model.opset_imports.setdefault(call.domain, 1)
        RemoveUnusedNodes()(model)
        model.graph.sort()

    def _resolve(self, value: ir.Value) -> ir.Value:
        """The value that replaces a value, or the value itself."""
        while id(value) in self._replacements:
            value = self._replacements[id(value)]
        return value

    def _find_extra_inputs(
        self, call: WholeCall, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The values that the part reads besides its inputs and constants, such as a size of the model's input."""
        chosen = ancestors(outputs, inputs)
        given = {id(value) for value in inputs}
        inside: set[int] = set(given)
        constant: set[int] = set()
        extra: dict[int, ir.Value] = {}
        for node in self._model.graph:
            if node not in chosen:
                continue
            read = list(operands_of(node))
            if any(id(v) in inside for v in read):
                inside.update(id(v) for v in node.outputs)
                extra.update({id(v): v for v in read if id(v) not in inside | constant and not is_constant(v)})
            elif all(is_constant(v) or id(v) in constant for v in read):
                constant.update(id(v) for v in node.outputs)
        if any(id(v) not in inside or id(v) in given for v in outputs):
            raise CompatError(
                f"keep_as_function: what {call.path or call.op_type!r} returns is not computed from what it is given."
            )
        return list(extra.values())

    def _add_function(self, call: WholeCall, part: ir.Model, weights: Sequence[str]) -> str:
        """Adds the function with this body, unless there is an equal one; returns its name."""
        graph = part.graph
        extra = []
        for name, value in list(graph.initializers.items()):
            del graph.initializers[name]
            if name in weights:
                continue
            assert value.const_value is not None
            constant = ir.node("Constant", [], {"value": ir.tensor(value.const_value.numpy(), name="")})
            constant.outputs[0].name = name
            ir.convenience.replace_all_uses_with(value, constant.outputs[0], replace_graph_outputs=True)
            extra.append(constant)
        given = {v.name: v for n in graph for v in operands_of(n) if v.name in weights}
        graph.inputs.extend(given[name] for name in weights)
        for constant in reversed(extra):
            graph.insert_before(graph[0], constant)
        _normalize_names(graph)
        used = {node.domain for node in all_nodes(graph)}
        for domain in set(graph.opset_imports) - used:
            del graph.opset_imports[domain]
        function = ir.Function(call.domain, call.op_type, graph=graph, attributes=[])
        body = ir.serde.serialize_function(function)
        body.ClearField("value_info")
        known = self._bodies.setdefault((call.domain, call.op_type), {})
        text = body.SerializeToString(deterministic=True)
        if text not in known:
            known[text] = call.op_type if not known or not call.has_body else f"{call.op_type}_{len(known)}"
            body.name = known[text]
            new = ir.serde.deserialize_function(body)
            if not call.has_body and new.identifier() in self._model.functions:
                raise CompatError(
                    f"keep_as_function: two calls of {call.name} compute different things beyond their weights, so "
                    f"that they cannot be checked as one operator; give each module an operator of its own."
                )
            self._model.functions[new.identifier()] = new
            if not call.has_body:
                self.without_body.append(new.identifier())
        return known[text]


def _deduplicate(values: Any) -> list[ir.Value]:
    return list({id(v): v for v in values if not is_constant(v)}.values())


def _is_weight(part: ir.Model, name: str) -> bool:
    """Whether a constant is a weight of the module, not a parameter of an operator: an axis, a shape, an epsilon."""
    value = part.graph.initializers[name].const_value
    return value is not None and (value.size > SMALL or (value.dtype.is_floating_point() and value.size > 1))


def _normalize_names(graph: ir.Graph) -> None:
    """Numbers the values, and removes other names, so that equal bodies have equal bytes."""
    for number, value in enumerate(graph.inputs):
        value.name = f"input_{number}"
    number = 0
    for node in graph:
        node.name = None
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            value.name, value.shape, value.type = f"value_{number}", None, None
            number += 1


def drop_bodies(model: ir.Model, identifiers: Sequence[Any]) -> None:
    """Removes functions that the engine defines from a model."""
    for identifier in identifiers:
        del model.functions[identifier]
