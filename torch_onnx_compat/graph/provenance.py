"""The origin of nodes: the exporters' notes on them, and which of these notes stay in the file."""

from __future__ import annotations

import re

import onnx_ir as ir

from torch_onnx_compat.graph.walk import all_nodes

_SCOPES = "pkg.torch.onnx.name_scopes"
_BULKY = ("namespace", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node", "pkg.torch.onnx.stack_trace")
"""A fifth of a small model's file; name_scopes and the node's name say the same in a few bytes."""


def place(node: ir.Node) -> str:
    """The path of the module that a node comes from, else the node's name."""
    scopes = re.findall(r"'([^']*)'", node.metadata_props.get(_SCOPES, ""))
    if scopes:
        return str(next((scope for scope in reversed(scopes[:-1]) if scope), scopes[-1]))
    return str(node.name or node.outputs[0].name)


def strip_adapter(model: ir.Model, adapter: str) -> None:
    """Removes the name of the module that was wrapped around the model from the nodes' names and scopes."""
    for node in all_nodes(model.graph):
        node.name = node.name and _without_scope(node.name, adapter)
        for output in node.outputs:
            output.name = output.name and _without_scope(output.name, adapter)
        if _SCOPES in node.metadata_props:
            node.metadata_props[_SCOPES] = re.sub(rf"'{adapter}\.?", "'", node.metadata_props[_SCOPES])


def _without_scope(name: str, adapter: str) -> str:
    """A name in TorchScript's form without the adapter, which a Sequential's children have in their own names too."""
    before, found, rest = name.partition(f"/{adapter}/")
    if not found:
        return name
    parts = rest.split("/")
    for i, part in enumerate(parts):
        if not part.startswith(f"{adapter}."):
            break
        parts[i] = part.removeprefix(f"{adapter}.")
    return f"{before}/{'/'.join(parts)}"


def drop_traces(model: ir.Model) -> None:
    """Removes the exporters' long notes."""
    for node in all_nodes(model.graph):
        for key in _BULKY:
            node.metadata_props.pop(key, None)
