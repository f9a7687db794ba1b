"""Lowering rules: operators whose axes, sizes or pads moved between attributes and inputs.

Source: https://onnx.ai/onnx/operators/ (the version history of each operator).
"""

from __future__ import annotations

import sys

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, first_input, input_at, lowering


@lowering("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", below=18)
@lowering("ReduceMin", "ReduceProd", "ReduceSumSquare", below=18)
@lowering("ReduceSum", below=13)
def reduction_axes_to_attribute(op: Builder, node: ir.Node) -> Outputs:
    """The axes become an attribute; no axes mean all of them, or with noop_with_empty_axes none."""
    x, axes = node.inputs[0], input_at(node, 1)
    given = op.ints(axes, "axes") if axes is not None else []
    if not given and attribute(node, "noop_with_empty_axes", 0):
        return _without_reduction(op, node.op_type, x)
    return op.clone(node, [x], axes=given or None, noop_with_empty_axes=None)


def _without_reduction(op: Builder, op_type: str, x: ir.Value | None) -> ir.Value:
    """What a reduction over no axes computes: each value is a sum of one term."""
    assert x is not None
    if op_type == "ReduceLogSum" and not op.dtype(x).is_floating_point():
        op.refuse("the logarithm of whole numbers")
    if op_type in ("ReduceL1", "ReduceL2"):
        return op.Abs(x)
    if op_type == "ReduceSumSquare":
        return op.Mul(x, x)
    return op.Log(x) if op_type == "ReduceLogSum" else op.Identity(x)


@lowering("ReduceMax", "ReduceMin", below=20)
def reduction_of_bool(op: Builder, node: ir.Node) -> Outputs:
    """Computes any and all on 0 and 1 in int32; over no elements the extremes of int32 stand for False and True."""
    x, *axes = node.inputs
    assert x is not None
    if op.dtype(x) != ir.DataType.BOOL:
        return None
    (reduced,) = op.clone(node, [op.Cast(x, to=int(ir.DataType.INT32)), *axes])
    return op.Greater(reduced, 0)


@lowering("Squeeze", "Unsqueeze", below=13)
def squeeze_axes_to_attribute(op: Builder, node: ir.Node) -> Outputs:
    """The axes become an attribute."""
    x, axes = node.inputs[0], input_at(node, 1)
    return op.clone(node, [x], axes=None if axes is None else op.ints(axes, "axes"))


@lowering("Split", below=18)
def split_num_outputs(op: Builder, node: ir.Node) -> Outputs:
    """Writes the sizes out where the last part is smaller, which num_outputs allows from opset 18 on."""
    x, parts, axis = node.inputs[0], len(node.outputs), attribute(node, "axis", 0)
    if "num_outputs" not in node.attributes:
        return None
    assert x is not None
    size = op.size(x, axis)
    if size is None:
        dynamic = op.Gather(op.Shape(x), [axis])
        part = op.Div(op.Add(dynamic, parts - 1), parts)
        rest = op.Sub(dynamic, op.Mul(part, parts - 1))
        return op.clone(node, [x, op.Concat(*[part] * (parts - 1), rest, axis=0)], num_outputs=None)
    whole = -(-size // parts)
    last = size - whole * (parts - 1)
    if last < 0:
        op.refuse(f"num_outputs={parts} of {size} elements leaves {last} for the last part")
    return op.clone(node, [x] if last == whole else [x, [whole] * (parts - 1) + [last]], num_outputs=None)


@lowering("Split", below=13)
def split_sizes_to_attribute(op: Builder, node: ir.Node) -> Outputs:
    """Constant sizes become an attribute; sizes computed at run time become Slices."""
    x, sizes, axis = node.inputs[0], input_at(node, 1), attribute(node, "axis", 0)
    if sizes is None:
        return None
    if op.numbers(sizes) is not None:
        return op.clone(node, [x], split=op.ints(sizes, "sizes"))
    parts, start = [], op.constant([0], ir.DataType.INT64)
    for index in range(len(node.outputs)):
        end = op.Add(start, op.Gather(sizes, [index]))
        parts.append(op.Slice(x, start, end, [axis]))
        start = end
    return tuple(parts)


@lowering("Pad", below=19)
def pad_wrap(op: Builder, node: ir.Node) -> None:
    """Wrapping is new in opset 19."""
    if attribute(node, "mode", "constant") == "wrap":
        op.refuse("padding mode 'wrap'")


@lowering("Pad", below=18)
def pad_of_some_axes(op: Builder, node: ir.Node) -> Outputs:
    """The other axes get pads of 0."""
    x, pads, value, axes = (*node.inputs, None, None)[:4]
    if axes is None:
        return None
    assert x is not None
    assert pads is not None
    rank = op.rank(x)
    chosen = [axis % rank for axis in op.ints(axes, "axes")]
    order = [axis + rank * end for end in (0, 1) for axis in chosen]
    zeros = op.constant([0] * 2 * rank, ir.DataType.INT64)
    return op.clone(node, [x, _scatter_entries(op, pads, order, zeros, 2 * rank), value])


@lowering("Pad", below=13)
def pad_of_bool(op: Builder, node: ir.Node) -> Outputs:
    """Until opset 12 Pad takes numbers only."""
    x, pads, *value = node.inputs
    assert x is not None
    if op.dtype(x) != ir.DataType.BOOL:
        return None
    wide = [v if v is None else op.Cast(v, to=int(ir.DataType.INT32)) for v in (x, *value)]
    (padded,) = op.clone(node, [wide[0], pads, *wide[1:]])
    return op.Cast(padded, to=int(ir.DataType.BOOL))


@lowering("Resize", below=19)
def resize_half_pixel_symmetric(op: Builder, node: ir.Node) -> None:
    """This coordinate transformation is new in opset 19."""
    if attribute(node, "coordinate_transformation_mode") == "half_pixel_symmetric":
        op.refuse("coordinate_transformation_mode 'half_pixel_symmetric'")


@lowering("Resize", below=18)
def resize_of_some_axes(op: Builder, node: ir.Node) -> Outputs:
    """The other axes get a scale of 1, or their present size."""
    x, roi, scales, sizes = (*node.inputs, None, None, None)[:4]
    axes = attribute(node, "axes")
    if axes is None:
        return None
    assert x is not None
    rank = op.rank(x)
    order = [axis % rank for axis in axes]
    if order != list(range(rank)):
        if attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
            op.refuse("a region of interest on some axes only")
        if scales is not None:
            scales = _scatter_entries(op, scales, order, op.constant([1] * rank, ir.DataType.FLOAT), rank)
        if sizes is not None:
            sizes = _scatter_entries(op, sizes, order, op.Shape(x), rank)
    return op.clone(node, [x, roi, scales, sizes], axes=None)


@lowering("Resize", below=13)
def resize_with_all_inputs(op: Builder, node: ir.Node) -> Outputs:
    """Until opset 12 roi and scales must be present, empty where they do not matter."""
    x, roi, scales, sizes = (*node.inputs, None, None, None)[:4]
    empty = op.constant([], ir.DataType.FLOAT)
    return op.clone(node, [x, empty if roi is None else roi, empty if scales is None else scales, sizes])


@lowering("Shape", below=15)
def shape_of_some_axes(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes a Shape and a Slice, which counts and clamps negative positions the same way."""
    start, end = attribute(node, "start", 0), attribute(node, "end")
    if start == 0 and end is None:
        return None
    whole = op.Shape(node.inputs[0])
    return op.Slice(whole, [start], [sys.maxsize if end is None else end])


@lowering("Reshape", below=14)
def reshape_allowing_zero(op: Builder, node: ir.Node) -> ir.Value | None:
    """A 0 in the shape of a tensor with elements is an error under allowzero.

    So a constant 0 says that the result is empty. A shape that is computed holds a 0 only at a size 0 of the input,
    and is left as it is; one that is an input may hold any.
    """
    x, shape = first_input(node), input_at(node, 1)
    if not attribute(node, "allowzero", 0) or shape is None:
        return None
    numbers = op.numbers(shape)
    if numbers is not None and not np.all(numbers):
        return op.ConstantOfShape(shape, value=ir.tensor(np.zeros(1, op.dtype(x).numpy()), dtype=op.dtype(x)))
    if shape.is_graph_input():
        return _reshape_to(op, x, shape)
    del node.attributes["allowzero"]
    return None


def _reshape_to(op: Builder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Fills up an empty tensor for a shape in which each 0 is a 1, and takes the elements away again."""
    kind = ir.DataType.INT64
    is_zero = op.Equal(shape, 0)
    filled = op.Where(is_zero, op.constant(1, kind), shape)
    is_empty = op.node("ReduceMax", [op.Cast(is_zero, to=kind)], {"axes": [0], "keepdims": 1})[0]
    count = op.Mul(op.node("ReduceProd", [filled], {"axes": [0], "keepdims": 1})[0], is_empty)
    padding = op.ConstantOfShape(count, value=ir.tensor(np.zeros(1, op.dtype(x).numpy()), dtype=op.dtype(x)))
    whole = op.Reshape(op.Concat(op.Reshape(x, [-1]), padding, axis=0), filled)
    ends = op.Where(is_zero, op.constant(0, kind), op.constant(sys.maxsize, kind))
    return op.Slice(whole, op.Mul(shape, 0), ends)


def _scatter_entries(op: Builder, chosen: ir.Value, order: list[int], otherwise: ir.Value, length: int) -> ir.Value:
    """A copy of `otherwise`, of this length, with the entries of `chosen` at the positions `order`."""
    index = [order.index(i) if i in order else len(order) + i for i in range(length)]
    values, rest = op.numbers(chosen), op.numbers(otherwise)
    if values is not None and rest is not None:
        return op.constant(np.concatenate([values, rest])[index], op.dtype(chosen))
    return op.Gather(op.Concat(chosen, otherwise, axis=0), index)
