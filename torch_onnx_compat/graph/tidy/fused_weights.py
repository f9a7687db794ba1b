"""Gives weights that onnxscript fused the type of the layer's input again.

Its rule that takes a batch normalisation into a convolution computes with the normalisation's numbers. Where these are
float32 and the convolution is not, as under autocast, or where numpy knows no bfloat16, the new weights are float32,
and no engine loads the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.rendering import NARROW
from torch_onnx_compat.graph.walk import all_nodes

_LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm"})


def restore_types(model: ir.Model) -> None:
    """Rounds float32 weights of layers whose input is narrow to its type, in place."""
    for node in all_nodes(model.graph):
        wanted = node.inputs[0].dtype if node.op_type in _LAYERS and node.inputs[0] is not None else None
        if wanted not in NARROW:
            continue
        for index, value in enumerate(node.inputs[1:], start=1):
            tensor = constant_tensor(value)
            if value is not None and tensor is not None and tensor.dtype is ir.DataType.FLOAT:
                node.replace_input_with(index, _rounded(model, value, np.asarray(tensor.numpy()), wanted))


def _rounded(model: ir.Model, value: ir.Value, wide: Any, dtype: ir.DataType) -> ir.Value:
    name = f"{value.name}_{dtype.name.lower()}"
    if name not in model.graph.initializers:
        tensor = ir.Tensor(wide.astype(dtype.numpy()), dtype=dtype, name=name)
        made = ir.Value(name=name, type=ir.TensorType(dtype), shape=value.shape, const_value=tensor)
        model.graph.register_initializer(made)
    return model.graph.initializers[name]
