"""Names of values: unique in a graph, and assigned where a caller asks for one."""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.walk import all_nodes


def claim_name(model: ir.Model, value: ir.Value, name: str) -> None:
    """Gives a value a name; another value of that name is renamed."""
    if value.name == name:
        return
    by_name = {v.name: v for v in all_values(model)}
    other = by_name.get(name)
    if other is not None and other is not value:
        number = 1
        while f"{name}_{number}" in by_name:
            number += 1
        rename(model, other, f"{name}_{number}")
    rename(model, value, name)


def rename(model: ir.Model, value: ir.Value, name: str) -> None:
    """Renames a value, in the table of initializers too if it is one."""
    initializers = model.graph.initializers
    is_initializer = value.name is not None and initializers.get(value.name) is value
    if is_initializer:
        del initializers[str(value.name)]
    value.name = name
    if value.const_value is not None and hasattr(value.const_value, "name"):
        value.const_value.name = name
    if is_initializer:
        initializers[name] = value


def all_values(model: ir.Model) -> list[ir.Value]:
    """Inputs, initializers and results of all nodes."""
    values = [*model.graph.inputs, *model.graph.initializers.values()]
    for node in all_nodes(model.graph):
        values.extend(node.outputs)
    return values
