"""A file in float64: the same graph, with every float32 number and type in float64."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.graph.walk import all_graphs

FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE

_SCALES = {"Resize": 2, "Upsample": 1}
"""Operators that take an input in float32 alone, and its place."""


def to_double(model: ir.Model) -> None:
    """Widens a graph to float64, in place; whether an engine has kernels for it shows when it is opened.

    Args:
        model: The graph.
    """
    if model.functions:
        InlinePass()(model)
    single = _single_inputs(model)
    for graph in list(all_graphs(model)):
        for value in (*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)):
            if value not in single:
                _widen(value)
        for node in graph:
            if not set(node.outputs) & single:
                _widen_attributes(node)


def _single_inputs(model: ir.Model) -> set[ir.Value | None]:
    """The values that stay in float32, as their readers take nothing else."""
    nodes = (node for graph in all_graphs(model) for node in graph)
    places = ((node, _SCALES[node.op_type]) for node in nodes if node.op_type in _SCALES)
    return {node.inputs[place] for node, place in places if len(node.inputs) > place}


def _widen(value: ir.Value) -> None:
    if value.dtype is FLOAT:
        value.type = ir.TensorType(DOUBLE)
    if value.const_value is not None and value.const_value.dtype is FLOAT:
        value.const_value = ir.tensor(value.const_value.numpy().astype(np.float64), name=value.name)


def _widen_attributes(node: ir.Node) -> None:
    if node.op_type == "Constant" and {"value_float", "value_floats"} & set(node.attributes):
        name = "value_float" if "value_float" in node.attributes else "value_floats"
        number = node.attributes.pop(name).value
        node.attributes["value"] = ir.AttrTensor("value", ir.tensor(np.array(number, np.float64)))
    for name, attribute in list(node.attributes.items()):
        if attribute.type is ir.AttributeType.TENSOR and attribute.value.dtype is FLOAT:
            node.attributes[name] = ir.AttrTensor(name, ir.tensor(attribute.value.numpy().astype(np.float64)))
        elif name in ("to", "dtype") and attribute.value == FLOAT.value:
            node.attributes[name] = ir.AttrInt64(name, DOUBLE.value)
    if node.op_type == "ConstantOfShape" and "value" not in node.attributes:
        node.attributes["value"] = ir.AttrTensor("value", ir.tensor(np.zeros(1)))
