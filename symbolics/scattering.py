"""Adding, reducing and writing values at indices along an axis.

ScatterElements adds one update after the other, so that every repetition of a place counts; onnxruntime's ScatterND, to
which stock dynamo exports index_add, adds with several threads at once and loses some of many updates of one place.
"""

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.ops import Number
from torch_onnx_compat.tracing import constant, static_size

SCATTER = Declaration(needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)

REDUCTIONS = {
    **{"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"},
    **{"add": "add", "multiply": "mul"},
}
"""What ScatterElements calls the reductions of scatter_reduce and index_reduce, and those of scatter."""


# Parts of the symbolics


def reduce_into(op: Ops, x: Value, axis: int, index: Value, src: Value, reduce: str, include_self: bool) -> Value:
    """Reduces src into x along an axis.

    Math: without x's own values, each place is first set to what the reduction leaves unchanged: 0 for sums, 1 for
          products, the least value for maxima. A mean is a sum over a count, which are scattered alike.

    Args:
        op: Adds the nodes.
        x: What is reduced into.
        axis: Along which the index counts.
        index: A place for each element of src.
        src: Of the shape of the index and the type of x.
        reduce: The reduction, as scatter_reduce calls it.
        include_self: Whether x's own values take part.

    Raises:
        UnsupportedError: Maxima or minima before opset 18.
    """
    dtype, reduction = op.dtype(x), REDUCTIONS[reduce]
    if reduction in ("max", "min") and op.opset < 18:
        raise UnsupportedError(
            f"scattering with reduce={reduce!r} needs opset 18 or later, got {op.opset}; raise opset_version."
        )
    base = x
    if not include_self:
        neutral = op.Expand(op.constant(_neutral(reduction, dtype), dtype), op.Shape(index))
        base = op.ScatterElements(x, index, neutral, axis=axis)
    total = op.ScatterElements(base, index, src, axis=axis, reduction=reduction)
    if reduce != "mean":
        return total
    one = op.constant(1, dtype)
    ones, count = op.Expand(one, op.Shape(index)), op.Expand(one, op.Shape(x))
    if not include_self:
        count = op.ScatterElements(count, index, neutral, axis=axis)
    count = op.ScatterElements(count, index, ones, axis=axis, reduction="add")
    mean = op.Div(total, count)
    if dtype.is_floating_point:
        return mean
    # Div rounds towards 0, torch down.
    too_high = op.Greater(op.Mul(mean, count), total)
    return op.Sub(mean, op.Where(too_high, one, op.constant(0, dtype)))


def _neutral(reduction: str, dtype: torch.dtype) -> Number:
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype.is_floating_point:
        return float("-inf") if reduction == "max" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduction == "max" else info.max


def crop(op: Ops, src: Value, index: Value) -> Value:
    """The part of `src` that `index` has places for; torch ignores the rest, and ScatterElements takes none."""
    if not is_larger(op, src, index):
        return src
    rank = op.rank(index) or 0
    return op.Slice(src, [0] * rank, op.Shape(index), list(range(rank)))


def is_larger(op: Ops, src: Value, index: Value) -> bool:
    """Whether `src` may be larger than `index`, as on an axis that varies."""
    sizes, wanted = op.shape(src), op.shape(index)
    if sizes is None or wanted is None:
        return False
    return any(a is None or a != b for a, b in zip(sizes, wanted, strict=True))


def spread(op: Ops, index: Value, axis: int, rank: int, like: Value) -> Value:
    """A vector of places along an axis as one place for each element of `like`."""
    index = op.Reshape(op.cast(index, torch.int64), [-1])
    if axis + 1 < rank:
        index = op.Unsqueeze(index, list(range(1, rank - axis)))
    return op.Expand(index, op.Shape(like)) if rank > 1 else index


# A place for each value


@symbolic("aten::scatter", **SCATTER)
def scatter(op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str | None = None) -> Value:
    """Adds, multiplies, or writes a part of the source; other writing is left to torch.

    Stock TorchScript refuses reduce=, and both exporters' files fail where the source is larger than the index.

    Schema: scatter(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor, and three more
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html
    """
    if not op.rank(self):
        return NotImplemented
    dtype, number = op.dtype(self), op.number(src)
    if number is not None:
        if reduce is None:
            return NotImplemented
        values = op.Expand(op.constant(number, dtype), op.Shape(index))
    elif op.rank(src) == 0:  # a number that the inputs tell
        values = op.Expand(op.cast(src, dtype), op.Shape(index))
    else:
        if reduce is None and not is_larger(op, src, index):
            return NotImplemented
        values = crop(op, src, index)
    return op.ScatterElements(self, index, values, axis=dim, reduction=REDUCTIONS[reduce] if reduce else None)


@symbolic("aten::scatter_add", needed_on=("dynamo",), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter_add(op: Ops, self: Value, dim: int, index: Value, src: Value) -> Value:
    """Adds the part of a larger source that has places; stock dynamo's file fails on it.

    Other sources are left to torch.

    Schema: scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
    """
    if not op.rank(self) or not is_larger(op, src, index):
        return NotImplemented
    return op.ScatterElements(self, index, crop(op, src, index), axis=dim, reduction="add")


@symbolic("aten::scatter_reduce", **SCATTER)
def scatter_reduce(
    op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces into places; stock TorchScript refuses means and include_self=False, stock dynamo errs on means.

    Tensors without axes are left to torch. So are maxima and minima before opset 18, which ScatterElements lacks there.

    Schema: scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) ->
            Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
    """
    if not op.rank(self) or (op.opset < 18 and include_self and reduce in ("amax", "amin")):
        return NotImplemented
    return reduce_into(op, self, dim, index, crop(op, src, index), reduce, include_self)


# A place for each slice


@symbolic("aten::index_add", **SCATTER)
def index_add(op: Ops, self: Value, dim: int, index: Value, source: Value, alpha: Number = 1) -> Value:
    """Adds slices; stock TorchScript loses repeated ones, stock dynamo adds them in a race between threads.

    Declines: sums of truth values, and of what has no known rank.

    Math: x[..., index[m], ...] += alpha * source[..., m, ...] for every m. The index, spread over the other axes, is
          that of ScatterElements.
    Schema: index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html
    """
    rank, dtype = op.rank(self), op.dtype(self)
    if rank is None:
        decline("the rank of the tensor is not known")
    if dtype == torch.bool:
        decline("truth values have no sum")
    source = op.cast(source, dtype)
    if op.number(alpha) != 1:
        source = op.Mul(source, op.cast(alpha, dtype))
    if not rank:
        self, source = op.Reshape(self, [-1]), op.Reshape(source, [-1])
    axis = dim % max(rank, 1)
    index = spread(op, index, axis, rank, source)
    total = op.ScatterElements(self, index, source, axis=axis, reduction="add")
    return total if rank else op.Reshape(total, op.constant([], torch.int64))


@symbolic("aten::index_reduce", **SCATTER)
def index_reduce(
    op: Ops, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces slices into places along an axis; neither exporter has it.

    Declines: tensors without axes.

    Math: scatter_reduce with the index spread over the other axes.
    Schema: index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) ->
            Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_reduce_.html
    """
    rank = op.rank(self)
    if not rank:
        decline("the tensor must have at least one axis")
    places = spread(op, index, dim % rank, rank, source)
    return reduce_into(op, self, dim % rank, places, source, reduce, include_self)


# A copy with a part exchanged


@decomposition(torch.select_scatter, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def select_scatter_to_cat(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with one slice exchanged; stock TorchScript has no symbolic for it."""
    axis = dim % input.dim()
    before = (*(slice(None),) * axis, slice(None, index))
    behind = (*(slice(None),) * axis, slice(index + 1, None))
    parts = [input[before], src.unsqueeze(axis)]
    if type(index) is not int or index != -1:
        parts.append(input[behind])
    return torch.cat(parts, axis)


@decomposition(torch.slice_scatter, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def slice_scatter_to_index_copy(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with a slice exchanged; stock TorchScript has no symbolic for it."""
    size = static_size(input, dim)
    if size is not None and all(bound is None or type(bound) is int for bound in (start, end)):
        places = constant(range(*slice(start, end, step).indices(size)), input, torch.int64)
    else:
        places = torch.arange(input.shape[dim], device=input.device)[start:end:step]
    return input.index_copy(dim % input.dim(), places, src)
