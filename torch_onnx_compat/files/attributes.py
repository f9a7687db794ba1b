"""Sets attributes of nodes in a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.walk import all_graphs

Attributes: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Values of attributes, by the name of a node or of one of its outputs, and by the attribute's name."""


def set_attributes(model: ir.Model, attributes: Attributes) -> str:
    """Sets attributes of nodes, in place; None takes one away, so that the operator's default holds.

    Args:
        model: The graph.
        attributes: The values.

    Returns:
        What was done, in words.

    Raises:
        CompatError: There is no such node or attribute, several nodes have the name, or the value is of another type.
    """
    nodes: dict[str, list[ir.Node]] = {}
    for node in (node for graph in all_graphs(model) for node in graph):
        for name in {node.name, *(value.name for value in node.outputs)}:
            if name:
                nodes.setdefault(str(name), []).append(node)
    done = []
    for name, values in attributes.items():
        if name not in nodes:
            raise unknown_name("node", name, nodes)
        if len(nodes[name]) > 1:
            raise CompatError(f"attributes: {len(nodes[name])} nodes are called {name!r}; name an output of the one.")
        for attribute, value in values.items():
            _set(model, nodes[name][0], name, attribute, value)
            done.append(f"{attribute} of {name} is {'left to its default' if value is None else value}")
    return "; ".join(done)


def _set(model: ir.Model, node: ir.Node, name: str, attribute: str, value: Any) -> None:
    known = None if node.domain else schema.find(node.op_type, model.opset_imports.get("", 0))
    if known is not None and attribute not in known.attributes:
        raise CompatError(
            f"attributes: {name}: {unknown_name(f'attribute of {node.op_type}', attribute, known.attributes)}"
        )
    if value is None:
        if known is not None and known.attributes[attribute].required:
            raise CompatError(f"attributes: {node.op_type} {name!r} needs {attribute!r}; give it a value.")
        node.attributes.pop(attribute, None)
        return
    wanted = _wanted_type(node, known, attribute)
    try:
        if wanted in ("FLOAT", "FLOATS"):
            value = [float(v) for v in value] if isinstance(value, (list, tuple)) else float(value)
        made = ir.convenience.convert_attribute(attribute, value)
    except (TypeError, ValueError) as error:
        raise CompatError(f"attributes: {attribute} of {name!r} is {value!r}: {error}.") from error
    if wanted not in ("", made.type.name):
        raise CompatError(f"attributes: {attribute} of {name!r} is {value!r}, {made.type.name}; wanted {wanted}.")
    node.attributes[attribute] = made


def _wanted_type(node: ir.Node, known: Any, attribute: str) -> str:
    """ONNX's name of an attribute's type; empty where nothing is known of it."""
    if known is not None:
        return str(known.attributes[attribute].type).rpartition(".")[2]
    return node.attributes[attribute].type.name if attribute in node.attributes else ""
