"""Lowering rules: indexing, sampling, Fourier transforms, and operators without a counterpart in lower opsets.

Source: https://onnx.ai/onnx/operators/ (the version history of each operator).
"""

from __future__ import annotations

import sys

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, first_input, input_at, lowering

_GRID_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@lowering("DFT", below=20)
def dft_axis_to_attribute(op: Builder, node: ir.Node) -> Outputs:
    """The axis becomes an attribute; its default, -2, is written out."""
    x, length, axis = (*node.inputs, None, None)[:3]
    position = op.ints(axis, "axis")[0] if axis is not None else -2
    return op.clone(node, [x, length], axis=position)


@lowering("GridSample", below=20)
def grid_sample_mode(op: Builder, node: ir.Node) -> Outputs:
    """Uses the names of the modes until opset 19, which are two-dimensional like the operator itself."""
    x, _ = node.inputs
    assert x is not None
    if op.rank(x) != 4:
        op.refuse(f"an input of {op.rank(x)} dimensions")
    mode = attribute(node, "mode", "linear")
    return op.clone(node, node.inputs, mode=_GRID_MODES.get(mode, mode))


@lowering("GridSample", below=16)
def grid_sample(op: Builder, _: ir.Node) -> None:
    """Refuses: one call would be hundreds of nodes; a rewrite writes them where the model's shapes are known."""
    op.refuse("no such operator before opset 16", "apply the rewrite 'grid_sample_to_gather'")


@lowering("ScatterElements", "ScatterND", below=18)
def scatter_extremum(op: Builder, node: ir.Node) -> None:
    """The reductions max and min are new in opset 18."""
    if attribute(node, "reduction", "none") in ("max", "min"):
        op.refuse(f"reduction {attribute(node, 'reduction')!r}")


@lowering("RoiAlign", below=16)
def roi_align_unshifted(op: Builder, node: ir.Node) -> None:
    """Refuses the shift by half a pixel, which is new in opset 16; else drops the attribute.

    Shifting the rois instead would differ, because a region is at least one pixel large.
    """
    if attribute(node, "coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        op.refuse("coordinate_transformation_mode 'half_pixel'", "use aligned=False")
    del node.attributes["coordinate_transformation_mode"]


@lowering("ArgMax", "ArgMin", below=12)
def last_of_equal_values(op: Builder, node: ir.Node) -> ir.Value | None:
    """Counts from the end: the last of equal values is the first one of the reversed axis."""
    if not attribute(node, "select_last_index", 0):
        node.attributes.pop("select_last_index", None)
        return None
    x, axis = first_input(node), attribute(node, "axis", 0)
    reversed_x = op.Slice(x, [-1], [-sys.maxsize], [axis], [-1])
    (place,) = op.clone(node, [reversed_x], select_last_index=None)
    last = op.Sub(op.Gather(op.Shape(x), op.constant(axis, ir.DataType.INT64)), 1)
    return op.Sub(last, place)


@lowering("Trilu", below=14)
def trilu(op: Builder, node: ir.Node) -> ir.Value:
    """Keeps x where column - row >= k (upper triangle) or <= k (lower); by And for bool, as engines lack its Where."""
    x, k = node.inputs[0], input_at(node, 1)
    assert x is not None
    rows, columns = (op.Range(0, op.Gather(op.Shape(x), op.constant(axis, ir.DataType.INT64)), 1) for axis in (-2, -1))
    beyond = op.Sub(columns, op.Reshape(rows, [-1, 1]))
    k = op.constant(0, ir.DataType.INT64) if k is None else k
    outside = op.Less(beyond, k) if attribute(node, "upper", 1) else op.Greater(beyond, k)
    if op.dtype(x) == ir.DataType.BOOL:
        return op.And(op.Not(outside), x)
    return op.Where(outside, op.constant(0, op.dtype(x)), x)
