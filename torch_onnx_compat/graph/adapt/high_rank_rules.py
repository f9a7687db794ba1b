"""Rules that compute single operators with few axes; see high_rank.

Math:   an operator along one axis treats all axes before it alike, and all axes after it alike. Selecting before a
        transposition is selecting after it, along the axis that it moves.
Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.adapt.flat_tensor import FlatTensor, View, few_axes, sizes_of
from torch_onnx_compat.graph.adapt.reordering import Sizes, product, reshape_to
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import attribute, first_input, input_at


def sizes_around(sizes: Sizes, axis: int) -> list[int | None]:
    """The size of all axes before one, the size of this one, and the size of all axes after it."""
    axis %= len(sizes)
    return [product(sizes[:axis]), sizes[axis], product(sizes[axis + 1 :])]


@few_axes("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
def same_elements(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Returns the same elements: the operator changes the shape only."""
    return [view.elements(first_input(node))]


@few_axes("Transpose")
def transpose(op: Builder, node: ir.Node, view: View) -> Sequence[FlatTensor]:
    """Records the order of the axes and moves nothing yet."""
    x = first_input(node)
    sizes = tuple(sizes_of(x))
    perm = tuple(attribute(node, "perm") or reversed(range(len(sizes))))
    flat = view.flat(x)
    if flat.perm is None:
        return [FlatTensor(flat.value, sizes, perm)]
    return [FlatTensor(flat.value, flat.sizes, tuple(flat.perm[axis] for axis in perm))]


@few_axes("Gather", "Slice", "Split")
def selection(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value | FlatTensor] | None:
    """Slices a range of one axis out of the elements before they are transposed."""
    x = first_input(node)
    axis, parts = _cuts(op, node)
    if axis is None:
        return None
    if parts is None:
        return _apply_along_axis(op, node, view, axis)
    flat = view.flat(x)
    sizes = flat.sizes if flat.perm is not None else tuple(sizes_of(x))
    perm = flat.perm or tuple(range(len(sizes)))
    place = perm[axis % len(perm)]
    if sizes_around(sizes, place)[2] is None:
        return None
    whole, at, step = _lay_out_for_slice(op, flat.value, sizes, place)
    found = []
    for start, end in parts:
        cut = op.Slice(whole, [start * step], [end * step], [at])
        if node.op_type == "Gather":
            left = tuple(a - (a > place) for a in perm if a != place)
            found.append(FlatTensor(cut, (*sizes[:place], *sizes[place + 1 :]), left))
        else:
            found.append(FlatTensor(cut, (*sizes[:place], end - start, *sizes[place + 1 :]), perm))
    return found


def _lay_out_for_slice(op: Builder, x: ir.Value, sizes: Sizes, place: int) -> tuple[ir.Value, int, int]:
    """The elements in a shape in which one Slice cuts the axis at `place`.

    A batch of one stands in front, because some engines take the first axis for the batch.

    Returns:
        The elements, the axis to slice, and how many of its places one place of the cut axis spans.
    """
    outer, size, inner = sizes_around(sizes, place)
    assert inner is not None
    if outer == 1:
        return reshape_to(op, x, [1, size, inner]), 1, 1
    row = None if size is None else size * inner
    shape = sizes_of(x) if x.shape is not None else []
    if row is not None and len(shape) in (2, 3, 4) and shape[-1] == row:
        return x, len(shape) - 1, inner
    return reshape_to(op, x, [1, outer, row]), 2, inner


def _cuts(op: Builder, node: ir.Node) -> tuple[int | None, list[tuple[int, int]] | None]:
    """The selected axis, None where unknown, and the range of each output, None where there is no constant one."""
    x = first_input(node)
    if node.op_type == "Slice":
        given = [None if value is None else op.numbers(value) for value in node.inputs[1:]]
        if len(given) < 3 or any(g is None or g.size != 1 for g in given):
            return None, None
        start, end, axis, *steps = (int(g.reshape(-1)[0]) for g in given if g is not None)
        size = op.size(x, axis)
        if size is None or steps not in ([], [1]):
            return axis, None
        start, end, _ = slice(start, end).indices(size)
        return axis, [(start, max(start, end))]
    axis = int(attribute(node, "axis", 0))
    if node.op_type == "Split":
        lengths = [op.size(output, axis) for output in node.outputs]
        if None in lengths:
            return None, None
        return axis, list(pairwise(np.cumsum([0, *[length or 0 for length in lengths]]).tolist()))
    index = op.numbers(node.inputs[1]) if node.inputs[1] is not None else None
    size = op.size(x, axis)
    if index is None or index.ndim or size is None:
        return axis, None
    place = int(index) % size
    return axis, [(place, place + 1)]


@few_axes("Softmax", "LogSoftmax")
def softmax(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Merges the axes before its own into one, and those after it."""
    return _apply_along_axis(op, node, view, int(attribute(node, "axis", -1))) if op.opset >= 13 else None


def _apply_along_axis(op: Builder, node: ir.Node, view: View, axis: int) -> Sequence[ir.Value] | None:
    outer, size, inner = sizes_around(sizes_of(first_input(node)), axis)
    # A batch of one in front, because some engines take the first axis for the batch.
    shape = [1, size, inner] if outer == 1 else [1, outer, size] if inner == 1 else [1, outer, size, inner]
    whole, place = view(first_input(node), shape), 1 if outer == 1 else 2
    if node.op_type == "Slice":
        return [op.Slice(whole, *node.inputs[1:3], [place], input_at(node, 4))]
    inputs = node.inputs[1:]
    if node.op_type == "Gather":
        index = inputs[0]
        numbers = op.numbers(index) if index is not None else None
        if index is None or (numbers is None and op.rank(index) > 1):
            return None
        inputs = (index if numbers is None else op.constant(numbers.reshape(-1), op.dtype(index)),)
    return op.clone(node, [whole, *inputs], axis=place)


@few_axes("Concat")
def concat(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Merges the axes before its own into one, and those after it."""
    axis = attribute(node, "axis")
    return [op.node("Concat", [view(v, sizes_around(sizes_of(v), axis)) for v in node.inputs if v], {"axis": 1})[0]]


@few_axes("LayerNormalization")
def layer_normalization(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Merges the axes before the last into one."""
    sizes = sizes_of(first_input(node))
    if attribute(node, "axis", -1) % len(sizes) != len(sizes) - 1 or len(node.outputs) > 1:
        return None
    return op.clone(node, [view(first_input(node), [1, product(sizes[:-1]), sizes[-1]]), *node.inputs[1:]], axis=-1)


_UNARY = ["Abs", "Ceil", "Clip", "Cast", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"]
_UNARY += ["Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Softplus", "Sqrt", "Tanh"]


@few_axes(*_UNARY)
def unary(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value]:
    """Merges the axes before the last into one."""
    sizes = sizes_of(first_input(node))
    return op.clone(node, [view(first_input(node), [1, product(sizes[:-1]), sizes[-1]]), *node.inputs[1:]])


@few_axes("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "Greater", "Where")
def elementwise(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Merges neighbouring axes that each input either has in full or broadcasts from one element."""
    values = [value for value in node.inputs if value is not None]
    merged = _merge_axes([sizes_of(value) for value in values], sizes_of(node.outputs[0]))
    if merged is None:
        return None
    return op.clone(node, [view(v, shape) for v, shape in zip(values, merged, strict=True)])


@few_axes("MatMul")
def matmul(op: Builder, node: ir.Node, view: View) -> Sequence[ir.Value] | None:
    """Merges neighbouring axes before the last two, as elementwise operators do."""
    values = [value for value in node.inputs if value is not None]
    sizes = [sizes_of(value) for value in values]
    if any(len(own) < 2 for own in sizes):
        return None
    if len(sizes[1]) == 2:
        inner = sizes[0][-1]
        return [op.MatMul(view(values[0], [1, product(sizes[0][:-1]), inner]), values[1])]
    merged = _merge_axes([own[:-2] for own in sizes], sizes_of(node.outputs[0])[:-2])
    if merged is None:
        return None
    return [op.MatMul(*(view(v, [*a, *own[-2:]]) for v, a, own in zip(values, merged, sizes, strict=True)))]


def _merge_axes(inputs: Sequence[Sizes], result: Sizes) -> list[list[int | None]] | None:
    """Shapes of the inputs after merging axes that broadcast alike; None where an unknown size may broadcast or not."""
    padded: list[list[int | None]] = [[*[1] * (len(result) - len(sizes)), *sizes] for sizes in inputs]
    merged: list[list[int | None]] = [[] for _ in inputs]
    last: tuple[bool, ...] | None = None
    for axis, size in enumerate(result):
        own = [sizes[axis] for sizes in padded]
        if size == 1:
            continue
        if size is None and any(s is not None and s != 1 for s in own):
            return None
        broadcast = tuple(s != 1 for s in own)
        for shape, s in zip(merged, own, strict=True):
            if broadcast == last:
                shape[-1] = product([shape[-1], s])
            else:
                shape.append(s)
        last = broadcast
    rank = max(map(len, merged))
    return [shape if rank else [1] for shape in merged]
