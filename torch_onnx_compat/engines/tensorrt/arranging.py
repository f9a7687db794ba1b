"""Layers that make, choose and move values: constants, shapes, slices, gathering and scattering, sorting, boxes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.engines.tensorrt.arithmetic import to_type
from torch_onnx_compat.engines.tensorrt.layers import TYPES, Call, fit_together, layer


@layer("CONSTANT")
def constant(call: Call) -> Tensor:
    """The layer's weights in the layer's shape."""
    array = call.get("weights")
    return to_type(call, torch.tensor(array).reshape(call.get("shape")), call.layer.outputs[0].type)


@layer("FILL")
def fill(call: Call) -> Tensor:
    """Numbers that rise from alpha by beta along each axis."""
    if call.get("operation") != "LINSPACE":
        raise call.not_known(f"{call.get('operation')} draws numbers")
    shape = call.numbers(0, "shape")
    start, steps = call.optional(1), call.optional(2)
    kind = TYPES.get(call.layer.outputs[0].type)
    if kind is None:
        raise call.not_known(f"element type {call.layer.outputs[0].type}")
    found = torch.full(shape, float(call.get("alpha")), dtype=kind) if start is None else start.expand(shape).to(kind)
    rises = torch.full((len(shape),), float(call.get("beta")), dtype=kind) if steps is None else steps.reshape(-1)
    if len(rises) != len(shape):
        raise call.fault(f"has {len(rises)} steps for {len(shape)} axes")
    for axis, (size, step) in enumerate(zip(shape, rises, strict=True)):
        places = torch.arange(size).reshape([-1 if index == axis else 1 for index in range(len(shape))])
        found = found + (places * step).to(kind)
    return found


@layer("SHAPE")
def shape_of(call: Call) -> Tensor:
    """The sizes of the input."""
    return torch.tensor(call.input(0).shape, dtype=TYPES[call.layer.outputs[0].type])


@layer("SHUFFLE")
def shuffle(call: Call) -> Tensor:
    """A transposition, a reshape, another transposition."""
    x = call.input(0)
    x = x.permute(call.get("first_transpose")[: x.dim()])
    if call.optional(1) is not None or call.layer.attributes.get("reshape_dims") is not None:
        sizes = call.numbers(1, "reshape_dims")
        if call.get("zero_is_placeholder"):
            if any(size == 0 and index >= x.dim() for index, size in enumerate(sizes)):
                raise call.fault(f"copies an axis into {sizes} that shape {tuple(x.shape)} does not have")
            sizes = [x.shape[index] if size == 0 else size for index, size in enumerate(sizes)]
        if -1 not in sizes and x.numel() != torch.Size(sizes).numel():
            raise call.fault(f"brings shape {tuple(x.shape)} to {sizes}, which has another number of values")
        x = x.reshape(sizes)
    return x.permute(call.get("second_transpose")[: x.dim()])


@layer("SQUEEZE")
def squeeze(call: Call) -> Tensor:
    """The input without axes of size 1: those that are named, otherwise all."""
    x = call.input(0)
    given = call.optional(1)
    if given is None:
        return x.squeeze()
    axes = sorted({int(axis) % x.dim() for axis in given.reshape(-1)})
    if any(x.shape[axis] != 1 for axis in axes):
        raise call.fault(f"drops axes {axes} of shape {tuple(x.shape)}, not all of size 1")
    return x.reshape([size for axis, size in enumerate(x.shape) if axis not in axes])


@layer("UNSQUEEZE")
def unsqueeze(call: Call) -> Tensor:
    """The input with further axes of size 1."""
    x, axes = call.input(0), call.input(1).reshape(-1)
    rank = x.dim() + len(axes)
    new, sizes = {int(axis) % rank for axis in axes}, iter(x.shape)
    return x.reshape([1 if axis in new else next(sizes) for axis in range(rank)])


@layer("CONCATENATION")
def concatenate(call: Call) -> Tensor:
    """The inputs one after the other along an axis."""
    tensors, axis = [x for x in call.inputs if x is not None], call.get("axis")
    shapes = {(*t.shape[:axis], *t.shape[axis + 1 :]) for t in tensors}
    if len(shapes) > 1:
        raise call.fault(f"joins shapes {', '.join(str(tuple(t.shape)) for t in tensors)} along axis {axis}")
    return torch.cat(tensors, axis)


@layer("SLICE")
def slice_(call: Call) -> Tensor:
    """Places start, start + stride, ... along each axis; the mode says what stands outside of the input."""
    x, mode = call.input(0), call.get("mode")
    start, size, stride = (call.numbers(i, name) for i, name in ((1, "start"), (2, "shape"), (3, "stride")))
    axes = list(range(x.dim()))
    if call.optional(5) is not None or call.layer.attributes.get("axes"):
        axes = [axis % x.dim() for axis in call.numbers(5, "axes")]
    if not len(start) == len(size) == len(stride) == len(axes):
        raise call.fault(f"has {len(start)} starts, {len(size)} sizes and {len(stride)} strides for {len(axes)} axes")
    outside = torch.zeros((), dtype=torch.bool)
    for axis, first, count, step in zip(axes, start, size, stride, strict=True):
        places = first + step * torch.arange(count)
        inside, is_out = _inside(call, places, x.shape[axis], mode)
        x = x.index_select(axis, inside)
        outside = outside | is_out.reshape([-1 if index == axis else 1 for index in range(x.dim())])
    if mode != "FILL":
        return x
    value = call.optional(4)
    value = torch.zeros((), dtype=x.dtype) if value is None else value.reshape(()).to(x.dtype)
    if x.numel() == 0:
        return x
    return torch.where(outside, value, x)


def _inside(call: Call, places: Tensor, size: int, mode: str) -> tuple[Tensor, Tensor]:
    """The places that are read, and whether each stood outside."""
    is_out = (places < 0) | (places >= size)
    if not is_out.any():
        return places, is_out
    if mode == "STRICT_BOUNDS":
        raise call.fault(f"reads place {int(places[is_out][0])} of an axis of size {size}")
    if mode == "WRAP":
        return places % size, is_out
    if mode == "REFLECT":
        period = max(2 * (size - 1), 1)
        turned = places % period
        return torch.minimum(turned, period - turned) if size > 1 else places * 0, is_out
    if mode in ("CLAMP", "FILL"):
        return places.clamp(0, max(size - 1, 0)), is_out
    raise call.not_known(f"mode {mode}")


@layer("PADDING")
def pad(call: Call) -> Tensor:
    """Zeros around the last two axes; negative numbers cut."""
    before, after = call.get("pre_padding_nd"), call.get("post_padding_nd")
    return functional.pad(call.input(0), [before[1], after[1], before[0], after[0]])


def _wrapped(call: Call, indices: Tensor, size: int) -> Tensor:
    """Indices with negative ones counted from the end."""
    found = torch.where(indices < 0, indices + size, indices).long()
    if found.numel() and not (int(found.min()) >= 0 and int(found.max()) < size):
        raise call.fault(f"reads an index outside of an axis of size {size}")
    return found


@layer("GATHER")
def gather(call: Call) -> Tensor:
    """Values at indices: whole slices along an axis, single values along an axis, or parts by several indices."""
    x, indices, mode, shared = call.input(0), call.input(1), call.get("mode"), call.get("num_elementwise_dims")
    if mode == "ND":
        return _gather_parts(call, x, indices, shared)
    axis = call.get("axis") % max(x.dim(), 1)
    if shared:
        raise call.not_known(f"{shared} leading dimensions with mode {mode}")
    places = _wrapped(call, indices, x.shape[axis])
    if mode == "ELEMENT":
        if places.dim() != x.dim():
            raise call.fault(f"reads shape {tuple(x.shape)} with indices of shape {tuple(places.shape)}")
        return x.gather(axis, places)
    if mode != "DEFAULT":
        raise call.not_known(f"mode {mode}")
    found = x.index_select(axis, places.reshape(-1))
    return found.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def _gather_parts(call: Call, x: Tensor, indices: Tensor, shared: int) -> Tensor:
    depth, lead = indices.shape[-1], x.shape[:shared]
    rows = [torch.arange(size).reshape([-1 if j == i else 1 for j in range(shared)]) for i, size in enumerate(lead)]
    extra = indices.dim() - 1 - shared
    places = [_wrapped(call, indices[..., i], x.shape[shared + i]) for i in range(depth)]
    return x[tuple([row.reshape(*row.shape, *[1] * extra) for row in rows] + places)]


@layer("SCATTER")
def scatter(call: Call) -> Tensor:
    """The input with other values at indices, along an axis or by several indices."""
    x, indices, updates, mode = call.input(0), call.input(1), call.input(2), call.get("mode")
    if mode == "ELEMENT":
        axis = call.get("axis") % x.dim()
        return x.scatter(axis, _wrapped(call, indices, x.shape[axis]), updates)
    places = tuple(_wrapped(call, indices[..., i], x.shape[i]) for i in range(indices.shape[-1]))
    return x.index_put(places, updates.reshape(*indices.shape[:-1], *x.shape[len(places) :]))


@layer("ONE_HOT")
def one_hot(call: Call) -> Tensor:
    """Along a new axis the second value at the index, the first elsewhere."""
    indices, values, depth = call.input(0), call.input(1), int(call.input(2))
    axis = call.get("axis") % (indices.dim() + 1)
    places = torch.arange(depth).reshape([-1 if index == axis else 1 for index in range(indices.dim() + 1)])
    return torch.where(indices.unsqueeze(axis) == places, values[1], values[0])


@layer("NON_ZERO")
def non_zero(call: Call) -> Tensor:
    """The indices of the values that are not zero, (rank, count)."""
    return call.input(0).nonzero().T.to(TYPES[call.layer.outputs[0].type])


@layer("TOPK")
def top(call: Call) -> Sequence[Tensor]:
    """The largest or smallest values along an axis and their indices; of equal values the first."""
    x, count = call.input(0), call.optional(1)
    (axis,) = call.axes("axes", x.dim())
    k = int(call.get("k") if count is None else count)
    order = torch.sort(x, dim=axis, descending=call.get("op") == "MAX", stable=True)
    values, indices = (t.narrow(axis, 0, k) for t in order)
    return values, indices.to(TYPES[call.layer.outputs[1].type])


@layer("REVERSE_SEQUENCE")
def reverse(call: Call) -> Tensor:
    """Each sequence of the batch with its first values turned round."""
    x, lengths = call.input(0), call.input(1)
    batch, time = call.get("batch_axis"), call.get("sequence_axis")
    places = torch.arange(x.shape[time]).reshape(1, -1)
    ends = lengths.reshape(-1, 1)
    order = torch.where(places < ends, ends - 1 - places, places)
    shape = [1] * x.dim()
    shape[batch], shape[time] = order.shape
    order = (order if batch < time else order.T).reshape(shape)
    return x.gather(time, order.expand(x.shape).long())


@layer("ASSERTION")
def check(call: Call) -> Sequence[Tensor]:
    """Nothing; the input must be true."""
    if not bool(call.input(0).all()):
        raise call.fault(f"asserts what is not so: {call.layer.attributes.get('message')}")
    return ()


@layer("NMS")
def suppress(call: Call) -> Sequence[Tensor]:
    """Rows (batch, class, box) of boxes that no better box of the class overlaps by more than a threshold.

    The rows are sorted by batch, then by falling score, as the documentation of INMSLayer says.
    """
    boxes, scores, most = call.input(0), call.input(1), int(call.input(2))
    overlap, least = (0.0 if t is None else float(t) for t in (call.optional(3), call.optional(4)))
    boxes = boxes.unsqueeze(2) if boxes.dim() == 3 else boxes
    if call.get("bounding_box_format") == "CENTER_SIZES":
        middle, size = boxes[..., :2], boxes[..., 2:]
        boxes = torch.cat([middle - size / 2, middle + size / 2], -1)
    rows: list[tuple[int, float, int, int]] = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[2]):
            own = boxes[batch, :, min(kind, boxes.shape[2] - 1)]
            for index in _kept(own, scores[batch, :, kind], most, overlap, least, call.get("topk_box_limit")):
                rows.append((batch, -float(scores[batch, index, kind]), kind, index))
    rows.sort(key=lambda row: row[:2])
    kind_of = TYPES[call.layer.outputs[0].type]
    found = torch.tensor([[b, c, i] for b, _, c, i in rows], dtype=kind_of).reshape(-1, 3)
    return found, torch.tensor(len(rows), dtype=TYPES[call.layer.outputs[1].type])


def _kept(boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float, limit: int) -> list[int]:
    low, high = torch.minimum(boxes[:, :2], boxes[:, 2:]), torch.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(-1)
    kept: list[int] = []
    ranked = scores.argsort(descending=True, stable=True)
    for index in ranked[scores[ranked] > least][: limit if limit > 0 else None].tolist():
        if len(kept) == most:
            break
        size = (torch.minimum(high[index], high[kept]) - torch.maximum(low[index], low[kept])).clamp(min=0).prod(-1)
        if not bool((size / (area[index] + area[kept] - size) > overlap).any()):
            kept.append(index)
    return kept


@layer("ROTARY_EMBEDDING")
def rotate(call: Call) -> Tensor:
    """Pairs of values turned by the angles of their positions.

    The input is (batch, heads, positions, size); the tables are (batch, positions, size / 2), or with positions as the
    fourth input (positions, size / 2).
    """
    x, cosine, sine, where = call.input(0), call.input(1), call.input(2), call.optional(3)
    if x.dim() != 4:
        raise call.not_known(f"an input of {x.dim()} axes")
    if where is not None:
        cosine, sine = cosine[where.long()], sine[where.long()]
    size = call.get("rotary_embedding_dim") or x.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
    if call.get("interleaved"):
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned.chunk(2, -1)
    fit_together(call, a, cosine, sine)
    real, imaginary = a * cosine - b * sine, a * sine + b * cosine
    if call.get("interleaved"):
        turned = torch.stack([real, imaginary], -1).flatten(-2)
    else:
        turned = torch.cat([real, imaginary], -1)
    return torch.cat([turned, rest], -1)
