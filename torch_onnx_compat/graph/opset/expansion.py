"""Expands operators without a rule to the body that ONNX itself defines for them, if it defines one."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.graph import schema, shapes
from torch_onnx_compat.graph.opset.lowering import RULES


def expand(model: ir.Model, opset: int, target: int) -> bool:
    """Replaces nodes by their ONNX function bodies.

    Args:
        model: The model, whose nodes are all of `opset`.
        opset: Only operators whose present version this opset introduced are expanded: their bodies are written for it.
        target: Only operators that this opset lacks, and that no rule lowers to it, are expanded.

    Returns:
        Whether a node was expanded.
    """
    nodes = [node for graph in model.graphs() for node in graph if _is_expandable(node, opset, target)]
    added = [node for node in nodes if _define(model, node, opset)]
    if added:
        InlinePass()(model)
        shapes.infer_model(model)
    return bool(added)


def _is_expandable(node: ir.Node, opset: int, target: int) -> bool:
    if node.domain != "" or schema.find(node.op_type, target) is not None:
        return False
    known = schema.find(node.op_type, opset)
    ruled = any(below > target for below in RULES.get(node.op_type, ()))
    takes_graphs = any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values())
    return known is not None and known.since_version == opset and not ruled and not takes_graphs


def _define(model: ir.Model, node: ir.Node, opset: int) -> bool:
    """Adds the body of this one node to the model, as a function overload of its own; returns whether there is one."""
    known = onnx.defs.get_schema(node.op_type, opset, "")
    body = _body(known, node, opset)
    if body is None:
        return False
    for name, parameter in known.attributes.items():
        if parameter.default_value.name and name not in node.attributes:
            node.attributes[name] = ir.serde.deserialize_attribute(parameter.default_value)
    node.overload = body.overload = str(node.outputs[0].name)
    del body.output[len(node.outputs) :]
    produced = {name for inner in body.node for name in inner.output}
    for name in set(body.output) - produced:  # The node omits the output; the body must have it all the same.
        body.node.append(onnx.helper.make_node("Identity", [body.input[0]], [name]))
    function = ir.serde.deserialize_function(body)
    function.opset_imports[""] = opset
    model.functions[function.identifier()] = function
    return True


def _body(known: Any, node: ir.Node, opset: int) -> onnx.FunctionProto | None:
    # Any, because onnx's stubs leave these methods of OpSchema out.
    if known.has_context_dependent_function:
        types = [shapes.type_proto(value).SerializeToString() for value in node.inputs]
        serialized = ir.serde.serialize_node(node).SerializeToString()
        body = known.get_context_dependent_function_with_opset_version(opset, serialized, types)
    else:
        body = known.get_function_with_opset_version(opset) if known.has_function else b""
    return onnx.FunctionProto.FromString(body) if body else None
