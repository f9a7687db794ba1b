"""Alternatives of operators that slice, pad, reshape or repeat tensors.

Math:   every k-th place of an axis is the first of a group of k places; the last group may be incomplete.
Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, first_input, input_at


@alternative("Split")
def split_by_slices(op: Builder, node: ir.Node) -> Outputs:
    """Slices each part out."""
    axis = attribute(node, "axis", 0)
    lengths = [op.size(output, axis) for output in node.outputs]
    if None in lengths:
        return None
    ends = np.cumsum([0, *[length or 0 for length in lengths]]).tolist()
    return [op.Slice(first_input(node), [a], [b], [axis]) for a, b in pairwise(ends)]


@alternative("Slice")
def stride_by_groups(op: Builder, node: ir.Node) -> Outputs:
    """Takes the first of each group of `step` places, one axis after the other."""
    x, wanted = first_input(node), _slice_bounds(op, node)
    if wanted is None or not any(step > 1 for *_, step in wanted) or any(step < 1 for *_, step in wanted):
        return None
    for axis, start, end, step in wanted:
        sizes = op.sizes(x)
        if sizes is None:
            return None
        count = max(-(-(end - start) // step), 0)
        whole = min(count, (sizes[axis] - start) // step)  # groups that the axis holds to their end
        if step == 1 or not count:
            x = op.Slice(x, [start], [end], [axis])
            continue
        parts = []
        if whole:
            outer, inner = int(np.prod(sizes[:axis])), int(np.prod(sizes[axis + 1 :]))
            if whole * step != sizes[axis]:
                parts.append(op.Slice(x, [start], [start + whole * step], [axis]))
            grouped = op.Reshape(parts.pop() if parts else x, [1, outer * whole, step * inner])
            first = op.Slice(grouped, [0], [inner], [2])
            parts.append(op.Reshape(first, [*sizes[:axis], whole, *sizes[axis + 1 :]]))
        if whole < count:
            last = start + whole * step
            parts.append(op.Slice(x, [last], [last + 1], [axis]))
        x = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=axis)
    return x


def _slice_bounds(op: Builder, node: ir.Node) -> list[tuple[int, int, int, int]] | None:
    """Axis, start, end and step of each sliced axis, clamped to its size; None where they are not known."""
    x = first_input(node)
    given = [op.numbers(value) if value is not None else None for value in node.inputs[1:]]
    if len(given) < 2 or any(g is None for g, v in zip(given, node.inputs[1:], strict=True) if v is not None):
        return None
    starts, ends = (np.asarray(g).tolist() for g in given[:2])
    axes = list(range(len(starts))) if len(given) < 3 or given[2] is None else given[2].tolist()
    steps = [1] * len(starts) if len(given) < 4 or given[3] is None else given[3].tolist()
    rank = op.rank(x)
    sizes = [op.size(x, axis % rank) for axis in axes]
    if None in sizes:
        return None
    bounds = (slice(s, e, k).indices(n or 0) for s, e, k, n in zip(starts, ends, steps, sizes, strict=True))
    return [(axis % rank, *bound) for axis, bound in zip(axes, bounds, strict=True)]


@alternative("Slice")
def slice_by_gather(op: Builder, node: ir.Node) -> Outputs:
    """Gathers the selected places of each axis, where the bounds and the sizes are known."""
    wanted = _slice_bounds(op, node)
    if wanted is None:
        return None
    x = first_input(node)
    for axis, *bounds in wanted:
        x = op.Gather(x, op.constant(list(range(*bounds)), ir.DataType.INT64), axis=axis)
    return x


@alternative("Expand")
def expand_by_product(op: Builder, node: ir.Node) -> Outputs:
    """Multiplies by a constant of ones in the result's shape."""
    x, sizes = first_input(node), op.sizes(node.outputs[0])
    if sizes is None or not op.dtype(x).is_floating_point():
        return None
    return op.Mul(x, op.constant(np.ones(sizes), op.dtype(x)))


@alternative("Squeeze", "Unsqueeze", "Flatten")
def reshape(op: Builder, node: ir.Node) -> Outputs:
    """Reshapes to the result's sizes, which must be known."""
    sizes = op.sizes(node.outputs[0])
    return None if sizes is None or not sizes else op.Reshape(first_input(node), sizes)


@alternative("Trilu")
def trilu_by_mask(op: Builder, node: ir.Node) -> Outputs:
    """Multiplies by a constant mask."""
    x, k = first_input(node), input_at(node, 1)
    sizes, offset = op.sizes(x), op.numbers(k) if k is not None else np.array(0)
    if sizes is None or offset is None or not op.dtype(x).is_floating_point():
        return None
    ones, diagonal = np.ones(sizes[-2:]), int(offset.reshape(()))
    mask = np.triu(ones, diagonal) if attribute(node, "upper", 1) else np.tril(ones, diagonal)
    return op.Where(op.constant(mask, ir.DataType.BOOL), x, 0)


@alternative("EyeLike")
def eye_by_places(op: Builder, node: ir.Node) -> Outputs:
    """Compares the number of each column with that of each row."""
    x = first_input(node)
    kind = attribute(node, "dtype")
    shape = op.Shape(x)
    rows, columns = (op.Range(0, op.Gather(shape, op.constant(axis, ir.DataType.INT64)), 1) for axis in (0, 1))
    shift = op.constant(attribute(node, "k", 0), ir.DataType.INT64)
    is_one = op.Equal(columns, op.Reshape(op.Add(rows, shift), [-1, 1]))
    return op.Cast(is_one, to=op.dtype(x) if kind is None else ir.DataType(kind))


@alternative("Pad")
def crop_by_slice(op: Builder, node: ir.Node) -> Outputs:
    """Writes a Pad whose pads are all negative or zero as a Slice."""
    x, pads, axes = first_input(node), node.inputs[1], input_at(node, 3)
    numbers = op.numbers(pads) if pads is not None else None
    if numbers is None or axes is not None or (numbers > 0).any() or not (numbers < 0).any():
        return None
    rank = op.rank(x)
    cropped = [a for a in range(rank) if numbers[a] or numbers[a + rank]]
    last = np.iinfo(np.int64).max
    ends = [int(numbers[a + rank]) or int(last) for a in cropped]
    return op.Slice(x, [int(-numbers[a]) for a in cropped], ends, cropped)


@alternative("Pad")
def pad_of_nothing(op: Builder, node: ir.Node) -> Outputs:
    """Leaves out a Pad that adds nothing."""
    pads = op.numbers(node.inputs[1]) if node.inputs[1] is not None else None
    return first_input(node) if pads is not None and not pads.any() else None


@alternative("Pad")
def pad_with_the_default(op: Builder, node: ir.Node) -> Outputs:
    """Omits the pad value where it is zero, the default, and writes the pads of all axes."""
    pads, value = _all_pads(op, node), input_at(node, 2)
    number = op.numbers(value) if value is not None else None
    if pads is None or len(node.inputs) < 3 or (value is not None and (number is None or number.any())):
        return None
    return op.clone(node, [first_input(node), pads])


@alternative("Pad")
def pad_by_concat(op: Builder, node: ir.Node) -> Outputs:
    """Concatenates constants before and after each padded axis."""
    x, pads, value = first_input(node), _all_pads(op, node), input_at(node, 2)
    number = op.numbers(value) if value is not None else np.zeros(())
    if pads is None or number is None or attribute(node, "mode", "constant") != "constant" or min(pads) < 0:
        return None
    for axis in range(op.rank(x)):
        sizes = op.sizes(x)
        if sizes is None:
            return None
        around = []
        for count in (pads[axis], pads[axis + op.rank(x)]):
            filling = np.full([*sizes[:axis], count, *sizes[axis + 1 :]], number.reshape(()))
            around.append([op.constant(filling, op.dtype(x))] if count else [])
        if any(around):
            x = op.Concat(*around[0], x, *around[1], axis=axis)
    return x


def _all_pads(op: Builder, node: ir.Node) -> list[int] | None:
    """The pads of all axes, begins then ends; None where they are not known."""
    pads, axes = (op.numbers(v) if v is not None else None for v in (node.inputs[1], input_at(node, 3)))
    rank = op.rank(first_input(node))
    if pads is None or (axes is None and input_at(node, 3) is not None):
        return None
    places = list(range(rank)) if axes is None else [int(axis) % rank for axis in axes]
    wanted = [0] * 2 * rank
    for index, place in enumerate(places):
        wanted[place], wanted[place + rank] = int(pads[index]), int(pads[index + len(places)])
    return wanted


@alternative("Div")
def repeat_by_broadcasting(op: Builder, node: ir.Node) -> Outputs:
    """Reads the operand of an Expand instead of its result, where the operator itself broadcasts to the same shape."""
    sources = []
    for value in node.inputs:
        producer = value.producer() if value is not None else None
        repeats = producer is not None and producer.op_type == "Expand" and not producer.domain
        sources.append(producer.inputs[0] if producer is not None and repeats else value)
    if sources == list(node.inputs) or len(sources) != 2:
        return None
    outputs = op.clone(node, sources)
    wanted = op.sizes(node.outputs[0])
    return outputs if wanted is not None and op.sizes(outputs[0]) == wanted else None


@alternative("Div")
def quotient_by_reciprocal(op: Builder, node: ir.Node) -> Outputs:
    """Multiplies by the reciprocal of a divisor that is no constant; floating-point numbers only."""
    x, divisor = node.inputs
    if x is None or divisor is None or not op.dtype(x).is_floating_point() or op.numbers(divisor) is not None:
        return None
    return op.Mul(x, op.Reciprocal(divisor))


@alternative("Softmax")
def softmax_without_single_axes(op: Builder, node: ir.Node) -> Outputs:
    """Removes axes of size 1 between the first axis and the last, along which the softmax is taken."""
    x, axis = first_input(node), attribute(node, "axis", -1)
    sizes = op.sizes(x)
    if sizes is None or op.opset < 13 or axis % len(sizes) != len(sizes) - 1 or 1 not in sizes[1:-1]:
        return None
    fewer = [sizes[0], *(size for size in sizes[1:-1] if size != 1), sizes[-1]]
    return op.Reshape(op.Softmax(op.Reshape(x, fewer), axis=len(fewer) - 1), sizes)
