"""Alternatives of operators on images: convolution, pooling and resizing.

Math:   auto_pad: total = max((ceil(n / stride) - 1) * stride + window - n, 0), the odd cell at the end for SAME_UPPER.
        With ceil_mode the last window may reach beyond the padded image. An average that counts the padding is a
        plain average over an image that was padded before. Resizing an axis is a matrix product: each output cell is a
        weighted sum of input cells.
Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.adapt.elementwise import squeeze_axes, unsqueeze_axes
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.facts.image import has_two
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, first_input, input_at
from torch_onnx_compat.graph.opset.pooling import pool_axes
from torch_onnx_compat.graph.padding import is_by_zero

_CUBIC = -0.75
"""ONNX's default of cubic_coeff_a."""


@alternative("Conv", "MaxPool", "AveragePool")
def explicit_pads(op: Builder, node: ir.Node) -> Outputs:
    """Replaces auto_pad by explicit pads."""
    x, mode = first_input(node), attribute(node, "auto_pad", "NOTSET")
    if mode == "NOTSET":
        return None
    kernel = _kernel(op, node)
    sizes = [op.size(x, axis) for axis in range(2, op.rank(x))]
    if kernel is None or None in sizes:
        return None
    pads = [0] * 2 * len(kernel)
    if mode != "VALID":
        strides, dilations = (attribute(node, name, (1,) * len(kernel)) for name in ("strides", "dilations"))
        for axis, (size, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations, strict=True)):
            total = max((-(-(size or 0) // s) - 1) * s + d * (k - 1) + 1 - (size or 0), 0)
            less, more = total // 2, total - total // 2
            pads[axis], pads[axis + len(kernel)] = (less, more) if mode == "SAME_UPPER" else (more, less)
    return op.clone(node, node.inputs, auto_pad=None, pads=pads)


def _kernel(op: Builder, node: ir.Node) -> list[int] | None:
    given = attribute(node, "kernel_shape")
    if given is None and node.op_type == "Conv" and node.inputs[1] is not None and node.inputs[1].shape is not None:
        given = list(node.inputs[1].shape)[2:]
    return [int(size) for size in given] if given and all(isinstance(size, int) for size in given) else None


@alternative("Conv", "AveragePool")
def absorb_pad(op: Builder, node: ir.Node) -> Outputs:
    """Adds the zeros of the Pad before it to its own pads."""
    x = first_input(node)
    pad, rank = x.producer(), op.rank(x)
    if pad is None or pad.op_type != "Pad" or not is_by_zero(pad) or input_at(pad, 3) is not None:
        return None
    given = input_at(pad, 1)
    numbers = op.numbers(given) if given is not None else None
    if numbers is None or (numbers < 0).any() or numbers.reshape(2, rank)[:, :2].any():
        return None
    before = np.array(attribute(node, "pads", [0] * 2 * (rank - 2)))
    counts = node.op_type == "AveragePool"
    uncounted = counts and before.any() and not attribute(node, "count_include_pad", 0)
    if attribute(node, "auto_pad", "NOTSET") != "NOTSET" or attribute(node, "ceil_mode", 0) or uncounted:
        return None
    pads = [int(size) for size in before + numbers.reshape(2, rank)[:, 2:].reshape(-1)]
    counted = {"count_include_pad": 1} if counts else {}
    return op.clone(node, [first_input(pad), *node.inputs[1:]], pads=pads, **counted)


@alternative("MaxPool", "AveragePool")
def pool_without_ceil_mode(op: Builder, node: ir.Node) -> Outputs:
    """Extends the pads at the end to where the last window reaches."""
    axes = pool_axes(op, node) if attribute(node, "ceil_mode", 0) else None
    if axes is None or len(node.outputs) > 1:
        return None
    begins = [axis.begin for axis in axes]
    ends = [axis.end_padding if axis.window_count > axis.floor else axis.end for axis in axes]
    if not attribute(node, "count_include_pad", 0):
        return op.clone(node, node.inputs, ceil_mode=0, pads=[*begins, *ends])
    padded = _pad_image(op, first_input(node), begins, [axis.end for axis in axes], 0.0)
    beyond = [max(end - axis.end, 0) for end, axis in zip(ends, axes, strict=True)]
    pads = [*[0] * len(axes), *beyond]
    return op.clone(node, [padded], ceil_mode=0, count_include_pad=0, pads=pads)


@alternative("MaxPool", "AveragePool")
def pool_after_pad(op: Builder, node: ir.Node) -> Outputs:
    """Moves the pads into a Pad node; those of an average only where it counts the padding."""
    pads = attribute(node, "pads")
    counted = node.op_type == "AveragePool" and attribute(node, "count_include_pad", 0)
    if not pads or not any(pads) or attribute(node, "ceil_mode", 0) or len(node.outputs) > 1:
        return None
    if node.op_type == "AveragePool" and not counted:
        return None
    half = len(pads) // 2
    filling = 0.0 if counted else float(np.finfo(np.float32).min)
    padded = _pad_image(op, first_input(node), pads[:half], pads[half:], filling)
    return op.clone(node, [padded], pads=[0] * len(pads), count_include_pad=None)


def _pad_image(op: Builder, x: ir.Value, begins: Any, ends: Any, filling: float) -> ir.Value:
    return op.Pad(x, [0, 0, *begins, 0, 0, *ends], filling)


@alternative(
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization"
)
def row_as_image(op: Builder, node: ir.Node) -> Outputs:
    """Takes a sequence (N, C, L) as an image of one row (N, C, 1, L)."""
    x = first_input(node)
    if op.rank(x) != 3 or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    inputs: list[Any] = [unsqueeze_axes(op, x, [2]), *node.inputs[1:]]
    if node.op_type in ("Conv", "ConvTranspose"):
        weight = node.inputs[1]
        numbers = op.numbers(weight) if weight is not None else None
        if numbers is None or weight is None:
            return None
        inputs[1] = op.constant(numbers[:, :, None], op.dtype(weight))
    changed: dict[str, Any] = {}
    for name, before in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("output_padding", 0)):
        if name in node.attributes:
            changed[name] = [before, *attribute(node, name)]
    if "pads" in node.attributes:
        begin, end = attribute(node, "pads")
        changed["pads"] = [0, begin, 0, end]
    outputs = op.clone(node, inputs, **changed)
    return squeeze_axes(op, outputs[0], [2]) if len(outputs) == 1 else None


@alternative("Resize")
def resize_by_other_input(op: Builder, node: ir.Node) -> Outputs:
    """Gives scales instead of sizes, or sizes instead of scales, where both mean the same."""
    x, y = first_input(node), node.outputs[0]
    before, after = op.sizes(x), op.sizes(y)
    crops = attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if before is None or after is None or "axes" in node.attributes or crops or _is_scaled_at_run_time(op, node):
        return None
    factors = np.array(after, np.float64) / np.array(before, np.float64)
    scales = input_at(node, 2)
    given = op.numbers(scales) if scales is not None else None
    if given is not None and given.size:
        if not np.allclose(given, factors, rtol=1e-6, atol=0):
            return None  # the scale counts, not the rounded size
        empty = op.constant([], ir.DataType.FLOAT) if op.opset < 13 else None
        return op.clone(node, [x, empty, empty, list(after)])
    exact = np.float32(factors)
    if (np.floor(np.array(before) * exact.astype(np.float64) + 1e-9) != after).any():
        return None
    empty = op.constant([], ir.DataType.FLOAT) if op.opset < 13 else None
    return op.clone(node, [x, empty, op.constant(exact, ir.DataType.FLOAT)])


@alternative("Resize")
def resize_of_single_cells(op: Builder, node: ir.Node) -> Outputs:
    """Expands axes of size 1: whatever the interpolation, it returns the only cell."""
    x, sizes = first_input(node), input_at(node, 3)
    crops = attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if crops or attribute(node, "exclude_outside", 0) or "axes" in node.attributes or x.shape is None:
        return None
    axes = _axes_to_resize(op, node)
    if axes is None and sizes is not None and all(size == 1 for size in x.shape[2:]):
        return op.Expand(x, sizes)
    if not axes or any(axis.size != 1 for axis in axes):
        return None
    wanted = {axis.number: axis.wanted for axis in axes}
    return op.Expand(x, [wanted.get(number, 1) for number in range(len(x.shape))])


@alternative("Resize")
def resize_of_two_cells(op: Builder, node: ir.Node) -> Outputs:
    """Doubles the row or the column of an image that has, or may have, a single one; the sizes of the result stay."""
    x = value = first_input(node)
    crops = attribute(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if crops or "axes" in node.attributes or attribute(node, "exclude_outside", 0) or attribute(node, "antialias", 0):
        return None
    axes = [a for a in range(2, op.rank(x)) if op.size(x, a) in (None, 1) and not has_two(x, a)]
    sizes = _sizes_of_result(op, node) if axes else None
    if sizes is None:
        return None
    for axis in axes:
        count = op.Slice(op.Shape(x), [axis], [axis + 1])
        less = op.Max(op.Sub([2], count), [0])
        value = op.Concat(value, op.Slice(value, [0], less, [axis]), axis=axis)
    empty = op.constant([], ir.DataType.FLOAT) if op.opset < 13 else None
    return op.clone(node, [value, empty, empty, sizes])


def _sizes_of_result(op: Builder, node: ir.Node) -> Any:
    """The sizes that a Resize has as an input, or gets by whole scales."""
    scales, sizes = input_at(node, 2), input_at(node, 3)
    if sizes is not None:
        return sizes
    factors = op.numbers(scales) if scales is not None else None
    if factors is None or (factors != factors.round()).any():
        return None
    return op.Mul(op.Shape(first_input(node)), [int(factor) for factor in factors])


@alternative("Resize")
def resize_as_product(op: Builder, node: ir.Node) -> Outputs:
    """Multiplies each resized axis by its matrix, or gathers the nearest cells; axes of fixed size only."""
    axes = None if attribute(node, "antialias", 0) else _axes_to_resize(op, node)
    if axes is None:
        return None
    x = value = first_input(node)
    for axis in axes:
        mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
        places = _places(mode, axis.size, axis.wanted, axis.factor)
        if places is None:
            return None
        resized = _resize_axis(op, node, value, axis.number, axis.size, places)
        if resized is None:
            return None
        value = resized
    return op.Identity(value) if value is x else value


@dataclass(frozen=True)
class _Axis:
    """An axis that a Resize changes."""

    number: int
    size: int
    wanted: int
    factor: float


def _axes_to_resize(op: Builder, node: ir.Node) -> list[_Axis] | None:
    """The axes that a Resize changes; None where one has no fixed size. The batch and the channels may vary."""
    x, y, scales = first_input(node), node.outputs[0], input_at(node, 2)
    if x.shape is None or y.shape is None or "axes" in node.attributes or _is_scaled_at_run_time(op, node):
        return None
    given = op.numbers(scales) if scales is not None else None
    factors = given.tolist() if given is not None and given.size else None
    axes = []
    for number, (size, wanted) in enumerate(zip(x.shape, y.shape, strict=True)):
        if isinstance(size, int) and isinstance(wanted, int):
            factor = factors[number] if factors else wanted / size
            if size != wanted or factor != 1:
                axes.append(_Axis(number, size, wanted, factor))
        elif number >= 2:
            return None
    return axes


def _is_scaled_at_run_time(op: Builder, node: ir.Node) -> bool:
    """Whether scales are computed: sizes that a file declares tell them roughly."""
    scales = input_at(node, 2)
    return scales is not None and scales.shape != (0,) and op.numbers(scales) is None


def _resize_axis(
    op: Builder, node: ir.Node, value: ir.Value, axis: int, size: int, places: npt.NDArray[Any]
) -> ir.Value | None:
    mode = attribute(node, "mode", "nearest")
    if mode == "nearest":
        cells = _nearest_cells(attribute(node, "nearest_mode", "round_prefer_floor"), places).clip(0, size - 1)
        return op.Gather(value, [int(cell) for cell in cells], axis=axis)
    if attribute(node, "exclude_outside", 0):
        return None
    coefficient = attribute(node, "cubic_coeff_a", _CUBIC)
    matrix = op.constant(_matrix(mode, places, size, coefficient).astype(np.float32), ir.DataType.FLOAT)
    rank = op.rank(value)
    if axis == rank - 2:
        return op.MatMul(matrix, value)
    order = [*(a for a in range(rank) if a != axis), axis]
    turned = value if axis == rank - 1 else op.Transpose(value, perm=order)
    product = op.MatMul(turned, op.constant(op.numbers(matrix).T, ir.DataType.FLOAT))  # type: ignore[union-attr]
    return product if axis == rank - 1 else op.Transpose(product, perm=[order.index(a) for a in range(rank)])


def _places(mode: str, size: int, wanted: int, factor: float) -> npt.NDArray[Any] | None:
    """The coordinate on the input's axis of each output cell, in float32 as onnxruntime computes it."""
    cells, scale, half = np.arange(wanted, dtype=np.float32), np.float32(factor), np.float32(0.5)
    if mode == "asymmetric":
        return np.asarray(cells / scale)
    if mode == "align_corners":
        return np.asarray(cells * np.float32(size - 1) / np.float32(wanted - 1) if wanted > 1 else cells * 0)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and wanted > 1):
        return np.asarray((cells + half) / scale - half)
    return np.asarray(cells * 0) if mode == "pytorch_half_pixel" else None


def _nearest_cells(mode: str, places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if mode == "floor":
        return np.asarray(np.floor(places))
    if mode == "ceil":
        return np.asarray(np.ceil(places))
    half = np.float32(0.5)
    return np.asarray(np.ceil(places - half) if mode == "round_prefer_floor" else np.floor(places + half))


def _matrix(mode: str, places: npt.NDArray[Any], size: int, coefficient: float) -> npt.NDArray[Any]:
    """Interpolation weights (output, input); weights of cells beyond the ends are added to those of the end cells."""
    base = np.floor(places).astype(int)
    reach = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    matrix = np.zeros((len(places), size))
    for offset in reach:
        distance = np.abs(places - (base + offset))
        weight = (1 - distance).clip(0) if mode == "linear" else _cubic_weights(distance, coefficient)
        np.add.at(matrix, (np.arange(len(places)), (base + offset).clip(0, size - 1)), weight)
    return matrix


def _cubic_weights(d: npt.NDArray[Any], a: float) -> npt.NDArray[Any]:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.asarray(near * (d <= 1) + far * ((d > 1) & (d < 2)))


@alternative("Conv")
def wide_kernel(op: Builder, node: ir.Node) -> Outputs:
    """Appends a column of zeros to a square kernel: by Winograd, as engines compute square ones, it is rounded more."""
    weight = node.inputs[1]
    numbers = op.numbers(weight) if weight is not None else None
    if weight is None or weight.dtype is None or numbers is None or numbers.ndim != 4:
        return None
    # With a larger stride, a wider image could hold one window more; auto_pad follows from the kernel.
    plain = attribute(node, "strides", (1, 1))[1] == attribute(node, "dilations", (1, 1))[1] == 1
    if numbers.shape[2] != numbers.shape[3] or not plain or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    wide = np.pad(numbers, ((0, 0), (0, 0), (0, 0), (0, 1)))
    top, left, bottom, right = attribute(node, "pads", (0, 0, 0, 0))
    inputs = [node.inputs[0], op.constant(wide, weight.dtype), *node.inputs[2:]]
    return op.clone(node, inputs, kernel_shape=list(wide.shape[2:]), pads=[top, left, bottom, right + 1])
