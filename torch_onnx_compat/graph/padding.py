"""Keeps onnxruntime from merging a Pad by zeros into the MaxPool behind it.

onnxruntime before 1.32 merges a Pad by 0 into the pool that follows. The padding of a MaxPool is minus infinity, so
that the zeros are lost where the border is negative. onnxruntime does not merge a Pad by -0, which is the same number.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.walk import all_nodes


def keep_zeros(model: ir.Model) -> None:
    """Replaces the 0 of every Pad before a MaxPool by -0, in place."""
    for pool in [node for node in all_nodes(model.graph) if node.op_type == "MaxPool"]:
        pad = pool.inputs[0].producer() if pool.inputs[0] is not None else None
        if pad is not None and pad.op_type == "Pad" and pad.graph is model.graph and is_by_zero(pad):
            zero = _minus_zero(model, pool)
            if zero is not None:
                pad.resize_inputs(max(len(pad.inputs), 3))
                pad.replace_input_with(2, zero)


def is_by_zero(pad: ir.Node) -> bool:
    """Whether a Pad puts zeros around its input."""
    if pad.attributes.get_string("mode", "constant") != "constant":
        return False
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    if value is None:
        return True
    number = ir.convenience.get_const_tensor(value)
    return number is not None and number.size == 1 and number.numpy().item() == 0


def _minus_zero(model: ir.Model, pool: ir.Node) -> ir.Value | None:
    dtype = next((v.dtype for v in (pool.inputs[0], *pool.outputs) if v is not None and v.dtype is not None), None)
    dtype = ir.DataType.FLOAT if dtype is None else dtype
    if not dtype.is_floating_point():
        return None
    data = ir.tensor(np.array(-0.0, dtype.numpy()), dtype=dtype)
    value = ir.Value(type=ir.TensorType(dtype), shape=ir.Shape(()), const_value=data)
    claim_name(model, value, "minus_zero")
    model.graph.register_initializer(value)
    return value
