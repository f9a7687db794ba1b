"""Weights that are read turned: turned once, or stored once if they are read both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.slim.facts import LIMIT
from torch_onnx_compat.graph.slim.movements import order_of

_FORMS = frozenset({"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
ARRAYS = frozenset(
    "FLOAT DOUBLE FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8 BOOL".split()  # noqa: SIM905
)
"""Element types that are numpy's own."""


def transpose_weights(model: ir.Model) -> None:
    """Turns each weight that is only read through one Transpose; the new one is a view of the same memory."""
    for value in list(model.graph.initializers.values()):
        users = [use.node for use in value.uses()]
        if not users or value.is_graph_input() or value.is_graph_output() or value.const_value is None:
            continue
        if any(user.op_type != "Transpose" or user.domain or user.graph is not model.graph for user in users):
            continue
        rank = len(value.const_value.shape)
        if len({order_of(user, rank) for user in users}) != 1 or value.const_value.dtype.name not in ARRAYS:
            continue
        array = value.const_value.numpy().transpose(order_of(users[0], rank))
        for user in users[1:]:
            ir.convenience.replace_all_uses_with(user.outputs[0], users[0].outputs[0])
        result = users[0].outputs[0]
        result.name = f"{value.name}_transposed"
        become_constant(model, result, ir.Tensor(array, dtype=value.const_value.dtype, name=result.name))


def tie_transposed_weights(model: ir.Model) -> None:
    """Replaces each matrix that is another one turned by a Transpose of the other; torch's folding stores both."""
    known: dict[Any, ir.Value] = {}
    for value in sorted(model.graph.initializers.values(), key=_is_invented):
        tensor = value.const_value
        if tensor is None or tensor.size <= LIMIT or len(tensor.shape) != 2 or tensor.dtype.name not in ARRAYS:
            continue
        if value.is_graph_input() or value.is_graph_output():
            continue
        array = tensor.numpy()
        other = known.get(_corners(array.T))
        if other is None or other.const_value is None or not np.array_equal(other.const_value.numpy(), array.T):
            known.setdefault(_corners(array), value)
            continue
        node = ir.node("Transpose", [other], {"perm": [1, 0]}, name=f"{value.name}_tied")
        result = node.outputs[0]
        result.name, result.type, result.shape = f"{value.name}_tied", value.type, value.shape
        model.graph.insert_before(model.graph[0], node)
        ir.convenience.replace_all_uses_with(value, result)
        del model.graph.initializers[str(value.name)]


def _is_invented(value: ir.Value) -> bool:
    """Whether an exporter gave the weight its name, not the model."""
    return "::" in str(value.name)


def _corners(array: Any) -> Any:
    """What equal matrices have in common, found without reading them."""
    return (array.dtype, array.shape, *(array[row, column].item() for row in (0, -1) for column in (0, -1)))


def is_second_form(node: ir.Node) -> bool:
    """Whether a node only moves or casts the elements of a weight that other nodes read as it is: a tied weight.

    Its result would hold the weight a second time.
    """
    value = node.inputs[0] if node.inputs and node.op_type in _FORMS else None
    if value is None or not value.is_initializer() or value.const_value is None:
        return False
    return value.const_value.size > LIMIT and any(use.node.op_type != node.op_type for use in value.uses())


def become_constant(model: ir.Model, value: ir.Value, tensor: ir.TensorProtocol) -> None:
    """Replaces a computed value by a constant of its name."""
    shape = ir.Shape(tensor.shape.numpy())
    made = ir.Value(name=value.name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
    value.name = f"{value.name}_computed"
    ir.convenience.replace_all_uses_with(value, made)
    model.graph.register_initializer(made)
