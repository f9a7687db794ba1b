"""Holds a graph against the target's profile: what the engine refuses or runs wrong is found before it sees it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.targets import Target


def lint(model: ir.Model, target: Target) -> None:
    """Checks every node.

    Raises:
        UnsupportedError: The target does not run some operator right; names each, with one place in the model.
    """
    opset = model.opset_imports[""]
    problems: dict[str, str] = {}
    for node in all_nodes(model.graph):
        if node.domain:
            continue
        attributes: dict[str, Any] = {
            name: attribute.value for name, attribute in node.attributes.items() if not attribute.is_ref()
        }
        objection = target.objection(node.op_type, opset, attributes)
        if objection:
            problems.setdefault(f"{node.op_type} {objection}", place(node))
    if problems:
        listed = "; ".join(f"{problem} (at {place})" for problem, place in problems.items())
        raise UnsupportedError(f"target {target.name!r} at opset {opset}: {listed}.")
