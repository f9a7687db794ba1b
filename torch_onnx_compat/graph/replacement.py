"""Replaces one node of a graph by new nodes."""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs


def replace(node: ir.Node, op: Builder, outputs: Outputs) -> bool:
    """Replaces a node by the builder's nodes, whose results get the names and the users of its outputs.

    Args:
        node: A node of a graph.
        op: The builder, whose nodes are inserted before the node.
        outputs: The new values of its first outputs; None keeps the node and inserts nothing.

    Returns:
        Whether the node was replaced.

    Raises:
        Refusal: An output without a new value is used.
    """
    if outputs is None:
        return False
    replacements = [outputs] if isinstance(outputs, ir.Value) else list(outputs)
    graph = node.graph
    assert graph is not None
    for old in node.outputs[len(replacements) :]:
        if old.uses() or any(output is old for output in graph.outputs):
            op.refuse(f"its output {old.name!r}")
    assigned: list[ir.Value] = []
    for old, new in zip(node.outputs, replacements, strict=False):
        if old.name:  # an omitted output has an empty one
            is_free = new.producer() in op.nodes and not any(new is one for one in assigned)
            if not is_free and not any(output is old for output in graph.outputs):
                ir.convenience.replace_all_uses_with(old, new)
                continue
            assigned.append(new if is_free else op.Identity(new))
            _take_over(graph, old, assigned[-1])
    graph.insert_before(node, op.nodes)
    graph.remove(node, safe=True)
    return True


def _take_over(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    if old.type is not None:
        new.type = old.type
    if old.shape is not None:
        new.shape = old.shape
    new.metadata_props.update(old.metadata_props)
    name, old.name = old.name, f"{old.name}_replaced"
    new.name = name
    for user, index in old.uses():
        user.replace_input_with(index, new)
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = new
