"""The places that a caller wants in float32: module paths and operators, which may be misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import onnx
import onnx_ir as ir

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.walk import nodes_of
from torch_onnx_compat.precision.layout import is_inside


def check_float32_places(keep: Collection[str], paths: Iterable[str], operators: Collection[str] = ()) -> None:
    """Looks whether there may be such places.

    Args:
        keep: The places.
        paths: Of the modules, or the places of the nodes.
        operators: Those that the file has, besides ONNX's own.

    Raises:
        ArgumentError: One is neither a module nor an operator; says what was perhaps meant.
    """
    if not keep:
        return
    known = {path for path in paths if path}
    named = {*operators, *(schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain)}
    for name in keep:
        if name not in named and not any(is_inside(path, name) for path in known):
            raise unknown_name("place to keep in float32", name, known | named)


def notes_on_float32_places(keep: Collection[str], network: ir.Model) -> list[str]:
    """Says which of the places no node of the file is at."""
    nodes = list(nodes_of(network))
    return [
        f"keep: no node of the file is a {name} or lies in a module {name}; nothing stays in float32 for it."
        for name in keep
        if not any(node.op_type == name or is_inside(place(node), name) for node in nodes)
    ]
