"""The shapes of what layers, products and reductions yield."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from torch_onnx_compat.graph.slim.facts import Facts, Shape, broadcast
from torch_onnx_compat.graph.slim.movements import Rule, Rules, axes_of, natural_size
from torch_onnx_compat.graph.slim.size import Size, at_least, divide_exactly
from torch_onnx_compat.graph.slim.table import Table

SHAPES: Table[Rule] = Table()
SEVERAL: Table[Rules] = Table()


@SHAPES.of("MatMul")
def _matmul(facts: Facts, node: ir.Node) -> Shape | None:
    left, right = map(facts.shape, node.inputs)
    if not left or not right:
        return None
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    lead = broadcast(facts, left[:-2], right[:-2])
    return None if lead is None else (*lead, *rows, *columns)


@SHAPES.of("Gemm")
def _gemm(facts: Facts, node: ir.Node) -> Shape | None:
    left, right = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if left is None or right is None:
        return None
    return (left[node.attributes.get_int("transA", 0)], right[1 - node.attributes.get_int("transB", 0)])


@SHAPES.of("Einsum")
def _einsum(facts: Facts, node: ir.Node) -> Shape | None:
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    shapes = [facts.shape(value) for value in node.inputs]
    if "." in equation or "->" not in equation:
        return None
    terms, result = equation.split("->")
    sizes: dict[str, Size] = {}
    for letters, shape in zip(terms.split(","), shapes, strict=True):
        if shape is None or len(shape) != len(letters):
            return None
        for letter, size in zip(letters, shape, strict=True):
            sizes[letter] = _joined_letters(facts, sizes.get(letter, 1), size)
    return tuple(sizes[letter] for letter in result)


def _joined_letters(facts: Facts, left: Size, right: Size) -> Size:
    (size,) = broadcast(facts, (left,), (right,)) or (right,)
    return size


@SHAPES.of("Conv")
def _conv(facts: Facts, node: ir.Node) -> Shape | None:
    shape, weight = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or weight is None:
        return None
    kernel: Sequence[Size] = node.attributes.get_ints("kernel_shape", ()) or weight[2:]
    return (shape[0], weight[0], *_windows(facts, node, shape[2:], kernel))


@SHAPES.of("MaxPool", "AveragePool", "LpPool")
def _pool(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    if shape is None:
        return None
    kernel = list(node.attributes.get_ints("kernel_shape", ()))
    return (*shape[:2], *_windows(facts, node, shape[2:], kernel))


def _windows(facts: Facts, node: ir.Node, sizes: Shape, kernel: Sequence[Size]) -> Shape:
    """How many windows fit, axis by axis."""
    count = len(sizes)
    strides = node.attributes.get_ints("strides", (1,) * count)
    dilations = node.attributes.get_ints("dilations", (1,) * count)
    pads = node.attributes.get_ints("pads", (0,) * (2 * count))
    padding = node.attributes.get_string("auto_pad", "NOTSET")
    result: list[Size] = []
    for place, size in enumerate(sizes):
        stride = strides[place]
        if padding in ("SAME_UPPER", "SAME_LOWER"):
            found = facts.unknowns.divide(size + stride - 1, stride)
        else:
            around = 0 if padding == "VALID" else pads[place] + pads[count + place]
            room = size + around - dilations[place] * (kernel[place] - 1) - 1
            found = facts.unknowns.divide(room, stride)
            # A last window that is not full counts by rules in which engines differ.
            if node.attributes.get_int("ceil_mode", 0) and divide_exactly(room, stride) is None:
                found = None
            found = None if found is None else found + 1
        axis = place + 2
        result.append(facts.axis(node.outputs[0], axis) if found is None else natural_size(facts, node, axis, found))
    return tuple(result)


@SHAPES.of("ConvTranspose")
def _conv_transpose(facts: Facts, node: ir.Node) -> Shape | None:
    shape, weight = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or weight is None:
        return None
    count = len(shape) - 2
    channels = weight[1] * node.attributes.get_int("group", 1)
    if "output_shape" in node.attributes or node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
        return (shape[0], channels, *(facts.axis(node.outputs[0], place + 2) for place in range(count)))
    strides = node.attributes.get_ints("strides", (1,) * count)
    dilations = node.attributes.get_ints("dilations", (1,) * count)
    pads = node.attributes.get_ints("pads", (0,) * (2 * count))
    more = node.attributes.get_ints("output_padding", (0,) * count)
    sizes = []
    for place, size in enumerate(shape[2:]):
        reach = dilations[place] * (weight[place + 2] - 1) + 1
        total = strides[place] * (size - 1) + more[place] + reach - pads[place] - pads[count + place]
        sizes.append(natural_size(facts, node, place + 2, total))
    return (shape[0], channels, *sizes)


@SHAPES.of("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (*shape[:2], *(1 for _ in shape[2:]))


@SHAPES.of("Resize")
def _resize(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    inputs = [*node.inputs, None, None, None][:4]
    if shape is None:
        return None
    sizes = facts.sizes(inputs[3])
    cropped = node.attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    simple = not {"axes", "keep_aspect_ratio_policy"} & set(node.attributes) and not cropped
    if simple and sizes is not None and len(sizes) == len(shape) and all(at_least(size, 0) for size in sizes):
        return tuple(sizes)
    scales = facts.numbers(inputs[2])
    if simple and inputs[3] is None and scales is not None and scales.size == len(shape):
        whole = [int(scale) if float(scale).is_integer() else None for scale in scales.reshape(-1)]
        return tuple(
            facts.axis(node.outputs[0], place) if factor is None else size * factor
            for place, (size, factor) in enumerate(zip(shape, whole, strict=True))
        )
    return tuple(facts.axis(node.outputs[0], place) for place in range(len(shape)))


@SHAPES.of(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum",
    "ReduceSumSquare",
)
def _reduce(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    if not axes and node.attributes.get_int("noop_with_empty_axes", 0) == 1:
        return shape
    gone = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    return _without(shape, gone, node.attributes.get_int("keepdims", 1) == 1)


@SHAPES.of("ArgMax", "ArgMin")
def _arg(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    if shape is None:
        return None
    return _without(
        shape, {node.attributes.get_int("axis", 0) % len(shape)}, node.attributes.get_int("keepdims", 1) == 1
    )


def _without(shape: Shape, gone: set[int], keeps: bool) -> Shape:
    return tuple(1 if p in gone else size for p, size in enumerate(shape) if keeps or p not in gone)


@SHAPES.of("NonZero")
def _nonzero(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (len(shape), facts.axis(node.outputs[0], 1))


@SEVERAL.of("TopK")
def _top_k(facts: Facts, node: ir.Node) -> list[Shape | None]:
    shape, wanted = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if shape is None:
        return []
    axis = node.attributes.get_int("axis", -1) % len(shape)
    size = wanted[0] if wanted and at_least(wanted[0], 0) else facts.axis(node.outputs[0], axis)
    found = (*shape[:axis], size, *shape[axis + 1 :])
    return [found, found]
