"""Which nodes of a finished file still compute with sizes."""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor

MANY = 50
"""From so many nodes on, a file is worth a look."""


def count_size_nodes(model: ir.Model) -> int:
    """How many nodes of the main graph depend on sizes alone: on Shape or Size, and on constants."""
    found: set[ir.Value] = set()
    count = 0
    for node in model.graph:
        values = [value for value in node.inputs if value is not None]
        is_source = node.op_type in ("Shape", "Size") and not node.domain
        others = [value for value in values if value not in found]
        follows = len(others) < len(values) and all(constant_tensor(value) is not None for value in others)
        if is_source or follows:
            found.update(node.outputs)
            count += 1
    return count


def note_on_sizes(model: ir.Model, nodes: int, other: str) -> list[str]:
    """A note if a quarter of many nodes compute with sizes.

    Args:
        model: The finished model.
        nodes: How many nodes it has.
        other: The exporter that may write fewer.
    """
    count = count_size_nodes(model)
    if count < MANY or 4 * count < nodes:
        return []
    return [f"{count} of {nodes} nodes compute sizes while the file runs; exporter={other!r} may write fewer."]
