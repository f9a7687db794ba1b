"""Lowering rules: pooling.

Source: https://onnx.ai/onnx/operators/ (the version history of MaxPool, AveragePool and LpPool).
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, lowering


@dataclass(frozen=True)
class _Axis:
    """How windows lie along one spatial axis."""

    size: int
    window: int
    """Dilated."""
    stride: int
    begin: int
    end: int

    @property
    def floor(self) -> int:
        """Windows without ceil_mode."""
        return (self.size + self.begin + self.end - self.window) // self.stride + 1

    @property
    def ceil(self) -> int:
        """Windows with ceil_mode, until opset 21."""
        return -(-(self.size + self.begin + self.end - self.window) // self.stride) + 1

    @property
    def window_count(self) -> int:
        """Windows with ceil_mode from opset 22 on, which drops a last window that starts on the padding."""
        return self.ceil - ((self.ceil - 1) * self.stride >= self.size + self.begin)

    @property
    def end_padding(self) -> int:
        """The padding at the end that the last window needs."""
        return (self.window_count - 1) * self.stride + self.window - self.size - self.begin


@lowering("AveragePool", "MaxPool", below=22)
def pool_without_window_on_padding(op: Builder, node: ir.Node) -> Outputs:
    """Drops a last window that starts on the padding, by ceil_mode=0 or by a smaller padding.

    Where sizes are dynamic the node stays: engines have always dropped that window, as torch does.
    """
    axes = pool_axes(op, node) if attribute(node, "ceil_mode", 0) else None
    if axes is None or all(axis.window_count == axis.ceil for axis in axes):
        return None
    if all(axis.window_count == axis.floor for axis in axes):
        return op.clone(node, node.inputs, ceil_mode=0)
    ends = [axis.end if axis.window_count == axis.ceil else axis.end_padding for axis in axes]
    if min(ends) < 0:
        op.refuse("ceil_mode with a last window that starts on the padding")
    return op.clone(node, node.inputs, pads=[*(axis.begin for axis in axes), *ends])


def pool_axes(op: Builder, node: ir.Node) -> list[_Axis] | None:
    """The spatial axes, or None where their sizes or pads are not known."""
    (x,) = node.inputs
    kernel = attribute(node, "kernel_shape")
    rank = len(kernel)
    assert x is not None
    sizes = [size for axis in range(2, rank + 2) if (size := op.size(x, axis)) is not None]
    if len(sizes) < rank or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    strides, dilations = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    pads = attribute(node, "pads", (0,) * 2 * rank)
    windows = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    return [_Axis(*known) for known in zip(sizes, windows, strides, pads[:rank], pads[rank:], strict=True)]


@lowering("AveragePool", below=19)
@lowering("LpPool", below=18)
def pool_dilations(_: Builder, node: ir.Node) -> None:
    """Drops dilations of 1, which a pool without the attribute has."""
    if set(attribute(node, "dilations", ())) == {1}:
        del node.attributes["dilations"]
