"""Values of a graph that are known before it runs."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir


def constant_tensor(value: ir.Value | None) -> Any:
    """The tensor of an initializer or of a Constant node; None for a value that is computed, fed or omitted."""
    if value is None or value.is_graph_input():
        return None
    return ir.convenience.get_const_tensor(value)
