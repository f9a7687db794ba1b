"""Multiplies the scale behind a convolution into its weights, which rounds otherwise; done where that is asked for.

Math: (W x + b) s = (s W) x + s b, channel by channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.unused import RemoveUnusedNodes

Array = npt.NDArray[np.float64]


def multiply_scales(model: ir.Model) -> None:
    """Takes each Mul away that scales the channels of a convolution whose weights nobody else reads, in place."""
    for node in list(model.graph):
        if node.op_type != "Mul" or node.domain or node.outputs[0].is_graph_output():
            continue
        for value, factor in (node.inputs, reversed(node.inputs)):
            layer = value.producer() if value is not None else None
            if layer is None or layer.op_type != "Conv" or layer.domain or not _is_read_once(layer.outputs[0]):
                continue
            if _scale(model, layer, factor):
                ir.convenience.replace_all_uses_with(node.outputs[0], layer.outputs[0])
                model.graph.remove(node, safe=True)
            break
    RemoveUnusedNodes()(model)


def _scale(model: ir.Model, layer: ir.Node, factor: ir.Value | None) -> bool:
    """Multiplies a convolution's weights; returns whether that was possible."""
    weights = _numbers(layer.inputs[1])
    numbers = _numbers(factor)
    if weights is None or numbers is None or not _is_read_once(layer.inputs[1]):
        return False
    channels, rank = weights.shape[0], weights.ndim
    shape = (*([1] * (rank - numbers.ndim)), *numbers.shape)
    if len(shape) != rank or any(size != 1 for place, size in enumerate(shape) if place != 1):
        return False
    by_channel = np.broadcast_to(numbers.reshape(-1), (channels,)) if shape[1] in (1, channels) else None
    has_bias = len(layer.inputs) > 2 and layer.inputs[2] is not None
    bias = _numbers(layer.inputs[2]) if has_bias else None
    if by_channel is None or (has_bias and bias is None):
        return False
    changed = {1: weights * by_channel.reshape(-1, *([1] * (rank - 1)))}
    if bias is not None:
        changed[2] = bias * by_channel
    if not all(_fits(array) for array in changed.values()):
        return False
    for index, array in changed.items():
        old = layer.inputs[index]
        assert old is not None
        tensor = ir.tensor(array.astype(np.float32), name=f"{old.name}_scaled")
        new = ir.Value(
            name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor
        )
        model.graph.register_initializer(new)
        layer.replace_input_with(index, new)
    return True


def _numbers(value: ir.Value | None) -> Array | None:
    """A constant of float32, in float64; None for anything else."""
    tensor: Any = constant_tensor(value)
    if tensor is None or tensor.dtype != ir.DataType.FLOAT:
        return None
    wide: Array = tensor.numpy().astype(np.float64)
    return wide


def _fits(array: Array) -> bool:
    """Whether numbers stay finite, and none that is not 0 loses digits, in float32."""
    sizes = np.abs(array[array != 0])
    limits = np.finfo(np.float32)
    return bool(np.isfinite(array).all() and (sizes >= limits.tiny).all() and (sizes <= limits.max).all())


def _is_read_once(value: ir.Value | None) -> bool:
    return value is not None and len(value.uses()) == 1 and not value.is_graph_output() and not value.is_graph_input()
