"""The shapes of each operator's results, and the numbers of those that compute with sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.slim.arithmetic import numbers_of_result, part_of_shape, taken
from torch_onnx_compat.graph.slim.facts import Facts, Shape, broadcast, product
from torch_onnx_compat.graph.slim.size import Size, at_least, divide_exactly

Rule: TypeAlias = "Callable[[Facts, ir.Node], Shape | None]"
"""The shape of a node's first result; None if it is not known."""

_RULES: dict[str, Rule] = {}


def infer(facts: Facts, node: ir.Node) -> None:
    """Notes shapes and numbers of a node's results; those of its operands are known, those of constants are read."""
    if node.domain:
        shapes: Sequence[Shape | None] = []
    elif node.op_type in _SAME_AS_FIRST:
        shapes = [facts.shape(node.inputs[0])]
    elif node.op_type in _SEVERAL:
        shapes = _SEVERAL[node.op_type](facts, node)
    else:
        rule = _RULES.get(node.op_type)
        shapes = [] if rule is None else [rule(facts, node)]
    facts.set_dtype(node.outputs[0], _dtype(facts, node))
    for place, value in enumerate(node.outputs):
        shape = shapes[place] if place < len(shapes) else None
        facts.set(value, shape, numbers_of_result(facts, node, shape) if place == 0 else None)


def _dtype(facts: Facts, node: ir.Node) -> ir.DataType | None:
    """The element type of a node's first result; None for operators of which nothing is known here."""
    if node.domain:
        return None
    if node.op_type in _WITH_DTYPE:
        return _WITH_DTYPE[node.op_type](facts, node)
    if node.op_type in _SAME_AS_FIRST or node.op_type in _RULES or node.op_type in _SEVERAL:
        return facts.dtype(node.inputs[0])
    return None


def _filled_dtype(facts: Facts, node: ir.Node) -> ir.DataType:
    value = node.attributes.get("value")
    return ir.DataType.FLOAT if value is None else value.as_tensor().dtype


_WITH_DTYPE: dict[str, Callable[[Facts, ir.Node], ir.DataType | None]] = {
    "Cast": lambda _, node: ir.DataType(node.attributes.get_int("to", 0)),
    "CastLike": lambda facts, node: facts.dtype(node.inputs[1]),
    "ConstantOfShape": _filled_dtype,
    "DequantizeLinear": lambda facts, node: facts.dtype(node.inputs[1]),
    "Where": lambda facts, node: facts.dtype(node.inputs[1]),
    **dict.fromkeys(("Shape", "Size", "NonZero", "ArgMax", "ArgMin"), lambda *_: ir.DataType.INT64),
    **dict.fromkeys(
        ("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"),
        lambda *_: ir.DataType.BOOL,
    ),
    **dict.fromkeys(("Bernoulli", "QuantizeLinear", "RandomNormalLike", "RandomUniformLike"), lambda *_: None),
}


def axes_of(facts: Facts, node: ir.Node, place: int = 1) -> list[int] | None:
    """The axes of a Squeeze, Unsqueeze or reduction, from the attribute or the input; [] without any."""
    if "axes" in node.attributes:
        return list(node.attributes.get_ints("axes", ()))
    if len(node.inputs) <= place or node.inputs[place] is None:
        return []
    return facts.ints(node.inputs[place])


def target_of(facts: Facts, node: ir.Node) -> Shape | None:
    """The shape that a Reshape gives its input, which its result has."""
    shape, target = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if target is None:
        return None
    sizes: list[Size] = []
    keeps_zeros = node.attributes.get_int("allowzero", 0) == 1
    for place, size in enumerate(target):
        if size == 0 and not keeps_zeros:
            if shape is None or place >= len(shape):
                return None
            size = shape[place]
        sizes.append(size)
    if -1 not in sizes:
        # A size that may be less than 0 would be the one that is to be found.
        return tuple(sizes) if all(at_least(size, 0) for size in sizes) else None
    at = sizes.index(-1)
    rest = product(sizes[:at] + sizes[at + 1 :])
    found = None
    if shape is not None and rest != 0:
        found = divide_exactly(product(shape), rest)
    sizes[at] = facts.axis(node.outputs[0], at) if found is None else found
    return tuple(sizes) if all(at_least(size, 0) for size in sizes) else None


def _rule(*op_types: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return add


_SAME_AS_FIRST = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli Cast CastLike Ceil Celu Clip Cos Cosh CumSum
    DequantizeLinear Dropout Elu Erf Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax LpNormalization
    MeanVarianceNormalization Mish Neg Not QuantizeLinear RMSNormalization RandomNormalLike RandomUniformLike
    Reciprocal Relu ReverseSequence Round ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus
    Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu""".split()
)


@_rule(
    *"""Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min
    Mod Mul Or PRelu Pow Sub Sum Where Xor""".split()
)
def _elementwise(facts: Facts, node: ir.Node) -> Shape | None:
    return broadcast(facts, *map(facts.shape, node.inputs))


@_rule("Shape")
def _shape(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (len(shape[part_of_shape(node)]),)


@_rule("Size")
def _size(facts: Facts, node: ir.Node) -> Shape | None:
    return ()


@_rule("Reshape")
def _reshape(facts: Facts, node: ir.Node) -> Shape | None:
    found = target_of(facts, node)
    if found is not None:
        return found
    count = facts.shape(node.inputs[1])
    if count is None or not isinstance(count[0], int):
        return None
    return tuple(facts.axis(node.outputs[0], place) for place in range(count[0]))


@_rule("Flatten")
def _flatten(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    axis = node.attributes.get_int("axis", 1)
    if shape is None:
        return None
    axis += len(shape) if axis < 0 else 0
    return (product(shape[:axis]), product(shape[axis:]))


@_rule("Squeeze")
def _squeeze(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    if not axes:
        return tuple(s for s in shape if s != 1) if all(isinstance(s, int) for s in shape) else None
    gone = {axis % len(shape) for axis in axes}
    return tuple(size for place, size in enumerate(shape) if place not in gone)


@_rule("Unsqueeze")
def _unsqueeze(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    return tuple(1 if place in new else next(rest) for place in range(rank))


@_rule("Transpose")
def _transpose(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else tuple(shape[place] for place in order_of(node, len(shape)))


def order_of(node: ir.Node, rank: int) -> tuple[int, ...]:
    """The axes of a Transpose's input in the order of its result."""
    return tuple(node.attributes.get_ints("perm", tuple(reversed(range(rank)))))


@_rule("Expand")
def _expand(facts: Facts, node: ir.Node) -> Shape | None:
    sizes = facts.sizes(node.inputs[1])
    if sizes is None or not all(at_least(size, 0) for size in sizes):
        return None
    return broadcast(facts, facts.shape(node.inputs[0]), tuple(sizes))


@_rule("ConstantOfShape")
def _constant_of_shape(facts: Facts, node: ir.Node) -> Shape | None:
    sizes = facts.sizes(node.inputs[0])
    return None if sizes is None or not all(at_least(size, 0) for size in sizes) else tuple(sizes)


@_rule("Range")
def _range(facts: Facts, node: ir.Node) -> Shape | None:
    start, limit, step = map(facts.sizes, node.inputs)
    if start is None or limit is None or step is None:
        return (facts.axis(node.outputs[0], 0),)
    if step[0] == 1:
        difference = limit[0] - start[0]
        if at_least(difference, 0):
            return (difference,)
    if isinstance(start[0], int) and isinstance(limit[0], int) and isinstance(step[0], int) and step[0]:
        return (len(range(start[0], limit[0], step[0])),)
    return (facts.axis(node.outputs[0], 0),)


@_rule("Tile")
def _tile(facts: Facts, node: ir.Node) -> Shape | None:
    shape, repeats = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if shape is None or repeats is None or not all(at_least(size, 0) for size in repeats):
        return None
    return tuple(size * count for size, count in zip(shape, repeats, strict=True))


@_rule("Pad")
def _pad(facts: Facts, node: ir.Node) -> Shape | None:
    shape, pads = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    axes = facts.ints(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    if shape is None or pads is None or (len(node.inputs) > 3 and node.inputs[3] is not None and axes is None):
        return None
    places = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
    sizes, half = list(shape), len(pads) // 2
    for count, place in enumerate(places):
        sizes[place] = _natural(facts, node, place, sizes[place] + pads[count] + pads[half + count])
    return tuple(sizes)


@_rule("Concat")
def _concat(facts: Facts, node: ir.Node) -> Shape | None:
    shapes = [facts.shape(value) for value in node.inputs]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    axis = node.attributes.get_int("axis", 0) % len(known[0])
    sizes = [next((s[place] for s in known if isinstance(s[place], int)), known[0][place]) for place in range(len(known[0]))]
    total: Size = facts.axis(node.outputs[0], axis)
    if len(known) == len(shapes):
        total = 0
        for shape in known:
            total = total + shape[axis]
    sizes[axis] = total
    return tuple(sizes)


@_rule("Gather")
def _gather(facts: Facts, node: ir.Node) -> Shape | None:
    shape, places = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or places is None:
        return None
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return (*shape[:axis], *places, *shape[axis + 1 :])


@_rule("GatherElements")
def _gather_elements(facts: Facts, node: ir.Node) -> Shape | None:
    return facts.shape(node.inputs[1])


@_rule("GatherND")
def _gather_nd(facts: Facts, node: ir.Node) -> Shape | None:
    shape, places = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or not places or not isinstance(places[-1], int):
        return None
    return (*places[:-1], *shape[node.attributes.get_int("batch_dims", 0) + places[-1] :])


@_rule("Slice")
def _slice(facts: Facts, node: ir.Node) -> Shape | None:
    shape, cuts = facts.shape(node.inputs[0]), cuts_of(facts, node)
    if shape is None:
        return None
    if cuts is None:
        return tuple(facts.axis(node.outputs[0], place) for place in range(len(shape)))
    sizes = list(shape)
    for place, start, end, step in cuts:
        length = cut_length(sizes[place], start, end, step)
        sizes[place] = facts.axis(node.outputs[0], place) if length is None else length
    return tuple(sizes)


LARGEST = 2**31 - 1
"""No axis is longer; ends from here on mean the end of the axis."""

Cut: TypeAlias = tuple[int, Size, Size, int]
"""Axis, start, end and step of a Slice."""


def cuts_of(facts: Facts, node: ir.Node) -> list[Cut] | None:
    """What a Slice takes from each axis that it names."""
    shape, starts, ends = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1]), facts.sizes(node.inputs[2])
    if shape is None or starts is None or ends is None:
        return None
    axes: list[int] | None = list(range(len(starts)))
    steps: list[int] | None = [1] * len(starts)
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        axes = facts.ints(node.inputs[3])
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = facts.ints(node.inputs[4])
    if axes is None or steps is None:
        return None
    return [(a % len(shape), s, e, t) for a, s, e, t in zip(axes, starts, ends, steps, strict=True)]


def cut_length(size: Size, start: Size, end: Size, step: int) -> Size | None:
    """How many elements a cut takes from an axis; None where a run decides."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(taken(size, start, end, step))
    first, last = _clamped(size, start), _clamped(size, end)
    if step != 1 or first is None or last is None:
        return None
    length = last - first
    return length if at_least(length, 0) else 0 if at_least(-length, 0) else None


def _clamped(size: Size, place: Size) -> Size | None:
    """Where a start or an end lies, from 0 to the size; None where a run decides."""
    if at_least(place, 0):
        if at_least(size - place, 0):
            return place
        is_beyond = isinstance(place, int) and place >= LARGEST
        return size if is_beyond or at_least(place - size, 0) else None
    if not at_least(-place, 1):
        return None
    counted = size + place
    if at_least(counted, 0):
        return counted
    return 0 if at_least(-counted, 0) else None


@_rule("MatMul")
def _matmul(facts: Facts, node: ir.Node) -> Shape | None:
    left, right = map(facts.shape, node.inputs)
    if not left or not right:
        return None
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    lead = broadcast(facts, left[:-2], right[:-2])
    return None if lead is None else (*lead, *rows, *columns)


@_rule("Gemm")
def _gemm(facts: Facts, node: ir.Node) -> Shape | None:
    left, right = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if left is None or right is None:
        return None
    return (left[node.attributes.get_int("transA", 0)], right[1 - node.attributes.get_int("transB", 0)])


@_rule("Einsum")
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


@_rule("Conv")
def _conv(facts: Facts, node: ir.Node) -> Shape | None:
    shape, weight = facts.shape(node.inputs[0]), facts.shape(node.inputs[1])
    if shape is None or weight is None:
        return None
    kernel = list(node.attributes.get_ints("kernel_shape", ())) or list(weight[2:])
    return (shape[0], weight[0], *_windows(facts, node, shape[2:], kernel))


@_rule("MaxPool", "AveragePool", "LpPool")
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
        result.append(facts.axis(node.outputs[0], axis) if found is None else _natural(facts, node, axis, found))
    return tuple(result)


def _natural(facts: Facts, node: ir.Node, axis: int, size: Size) -> Size:
    """A computed size, of which the computation may not show that it is 0 or more, though it is the size of an axis."""
    if at_least(size, 0):
        return size
    if isinstance(size, int):
        return facts.axis(node.outputs[0], axis)  # the node fails
    return facts.unknowns.get(("axis", size), is_natural=True)


@_rule("ConvTranspose")
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
        sizes.append(_natural(facts, node, place + 2, total))
    return (shape[0], channels, *sizes)


@_rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (*shape[:2], *(1 for _ in shape[2:]))


@_rule("Resize")
def _resize(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    inputs = [*node.inputs, None, None, None][:4]
    if shape is None:
        return None
    sizes = facts.sizes(inputs[3])
    simple = not {"axes", "keep_aspect_ratio_policy"} & set(node.attributes)
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


@_rule(
    *"""ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare""".split()
)
def _reduce(facts: Facts, node: ir.Node) -> Shape | None:
    shape, axes = facts.shape(node.inputs[0]), axes_of(facts, node)
    if shape is None or axes is None:
        return None
    if not axes and node.attributes.get_int("noop_with_empty_axes", 0):
        return shape
    gone = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    return _without(shape, gone, bool(node.attributes.get_int("keepdims", 1)))


@_rule("ArgMax", "ArgMin")
def _arg(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    if shape is None:
        return None
    return _without(shape, {node.attributes.get_int("axis", 0) % len(shape)}, bool(node.attributes.get_int("keepdims", 1)))


def _without(shape: Shape, gone: set[int], keeps: bool) -> Shape:
    return tuple(1 if p in gone else size for p, size in enumerate(shape) if keeps or p not in gone)


@_rule("DepthToSpace")
def _depth_to_space(facts: Facts, node: ir.Node) -> Shape | None:
    shape, block = facts.shape(node.inputs[0]), node.attributes.get_int("blocksize", 1)
    if shape is None:
        return None
    channels = divide_exactly(shape[1], block * block)
    return None if channels is None else (shape[0], channels, shape[2] * block, shape[3] * block)


@_rule("SpaceToDepth")
def _space_to_depth(facts: Facts, node: ir.Node) -> Shape | None:
    shape, block = facts.shape(node.inputs[0]), node.attributes.get_int("blocksize", 1)
    if shape is None:
        return None
    height, width = divide_exactly(shape[2], block), divide_exactly(shape[3], block)
    return None if height is None or width is None else (shape[0], shape[1] * block * block, height, width)


@_rule("NonZero")
def _nonzero(facts: Facts, node: ir.Node) -> Shape | None:
    shape = facts.shape(node.inputs[0])
    return None if shape is None else (len(shape), facts.axis(node.outputs[0], 1))


def _split(facts: Facts, node: ir.Node) -> list[Shape | None]:
    shape, count = facts.shape(node.inputs[0]), len(node.outputs)
    if shape is None:
        return []
    axis = node.attributes.get_int("axis", 0) % len(shape)
    parts: Sequence[Size] | None = None
    if "split" in node.attributes:
        parts = list(node.attributes.get_ints("split", ()))
    elif len(node.inputs) > 1 and node.inputs[1] is not None:
        parts = facts.sizes(node.inputs[1])
    else:
        part = divide_exactly(shape[axis], count)
        parts = None if part is None else [part] * count
    if parts is None or not all(at_least(part, 0) for part in parts):
        parts = [facts.axis(value, axis) for value in node.outputs]
    return [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]


def _top_k(facts: Facts, node: ir.Node) -> list[Shape | None]:
    shape, wanted = facts.shape(node.inputs[0]), facts.sizes(node.inputs[1])
    if shape is None:
        return []
    axis = node.attributes.get_int("axis", -1) % len(shape)
    size = wanted[0] if wanted and at_least(wanted[0], 0) else facts.axis(node.outputs[0], axis)
    found = (*shape[:axis], size, *shape[axis + 1 :])
    return [found, found]


_SEVERAL: dict[str, Callable[[Facts, ir.Node], list[Shape | None]]] = {"Split": _split, "TopK": _top_k}
