"""Raising rules: the operators whose meaning changed after opset 18, by more than new types and attributes.

Source: https://onnx.ai/onnx/operators/ (DFT and GridSample at 20, GroupNormalization at 21).
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, input_at, raising

_GRID_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@raising("DFT", at=20)
def dft_axis_to_input(op: Builder, node: ir.Node) -> Outputs:
    """The axis becomes an input; its default was 1."""
    axis = op.constant(attribute(node, "axis", 1), ir.DataType.INT64)
    return op.clone(node, [node.inputs[0], input_at(node, 1), axis], axis=None)


@raising("GridSample", at=20)
def grid_sample_mode(op: Builder, node: ir.Node) -> Outputs:
    """Uses the names of the modes from opset 20 on, which hold in any number of dimensions."""
    mode = attribute(node, "mode", "bilinear")
    return op.clone(node, node.inputs, mode=_GRID_MODES.get(mode, mode))


@raising("GroupNormalization", at=21)
def group_normalization_per_channel(op: Builder, node: ir.Node) -> Outputs:
    """Scale and bias per group are repeated for each channel of the group."""
    x, *parameters = node.inputs
    channels = op.Div(op.Slice(op.Shape(x), [1], [2]), attribute(node, "num_groups"))
    size = op.Concat(op.constant([1], ir.DataType.INT64), channels, axis=0)
    repeated = [op.Reshape(op.Expand(op.Unsqueeze(p, [1]), size), [-1]) for p in parameters]
    return op.clone(node, [x, *repeated])
