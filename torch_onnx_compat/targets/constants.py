"""Constants of a graph."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir


def numbers(value: ir.Value | None) -> Any:
    """A constant's tensor; None for what is computed or fed."""
    if value is None or value.is_graph_input():
        return None
    return ir.convenience.get_const_tensor(value)
