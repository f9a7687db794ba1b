"""Adding and writing values at indices along an axis.

Scattering with a reduction in ONNX operators.

Math:   without the scattered-to values themselves, each place is first set to what the reduction leaves unchanged: 0
        for sums, 1 for products, the least value for maxima. A mean is a sum over a count, which are scattered alike.
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.ops import Number
from torch_onnx_compat.tracing import constant, static_size

REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def reduced(
    op: Ops, x: Value, axis: int, index: Value, src: Value, reduce: str, include_self: bool, dtype: torch.dtype
) -> Value:
    """Reduces src into x along an axis; `index` and `src` have one shape, all have the element type `dtype`.

    Raises:
        UnsupportedError: Maxima or minima before opset 18.
    """
    reduction = REDUCTIONS[reduce]
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
    too_high = op.Greater(op.Mul(mean, count), total)
    return op.Sub(mean, op.Where(too_high, one, op.constant(0, dtype)))


def _neutral(reduction: str, dtype: torch.dtype) -> Number:
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    if dtype.is_floating_point:
        return float("-inf") if reduction == "max" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduction == "max" else info.max


def fitted(op: Ops, src: Value, index: Value) -> Value:
    """The part of `src` that `index` has places for; torch ignores the rest, ONNX has no rest."""
    if not is_longer(op, src, index):
        return src
    rank = op.rank(index)
    return op.Slice(src, [0] * (rank or 0), op.Shape(index), list(range(rank or 0)))


def is_longer(op: Ops, src: Value, index: Value) -> bool:
    """Whether `src` may be larger than `index`; axes that both vary are taken to be equal."""
    sizes, wanted = op.shape(src), op.shape(index)
    if sizes is None or wanted is None:
        return False
    return any(a != b for a, b in zip(sizes, wanted, strict=True))


def spread(op: Ops, index: Value, axis: int, rank: int, like: Value) -> Value:
    """A vector of places along an axis as one place for each element of `like`."""
    index = op.Reshape(op.cast(index, torch.int64), [-1])
    if axis + 1 < rank:
        index = op.Unsqueeze(index, list(range(1, rank - axis)))
    return op.Expand(index, op.Shape(like)) if rank > 1 else index


_REDUCTIONS = {"add": "add", "multiply": "mul"}


@symbolic("aten::scatter", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter(op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str | None = None) -> Value:
    """Adds, multiplies, or writes a part of the source; other writing is left to torch.

    Stock TorchScript refuses reduce=, and both exporters' files fail where the source is longer than the index.

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
    else:
        if reduce is None and not is_longer(op, src, index):
            return NotImplemented
        values = fitted(op, src, index)
    return op.ScatterElements(self, index, values, axis=dim, reduction=_REDUCTIONS[reduce] if reduce else None)


@symbolic("aten::scatter_add", needed_on=("dynamo",), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter_add(op: Ops, self: Value, dim: int, index: Value, src: Value) -> Value:
    """Adds the part of the source that has places; stock dynamo's file fails on it. The rest is left to torch.

    Schema: scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
    """
    if not op.rank(self) or not is_longer(op, src, index):
        return NotImplemented
    return op.ScatterElements(self, index, fitted(op, src, index), axis=dim, reduction="add")


@symbolic("aten::scatter_reduce", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter_reduce(
    op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces into places; stock TorchScript refuses means and include_self=False, stock dynamo errs on means.

    Tensors without axes are left to torch, as are maxima and minima before opset 18, of which ONNX has none.

    Schema: scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) ->
            Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
    """
    if not op.rank(self) or (op.opset < 18 and include_self and reduce in ("amax", "amin")):
        return NotImplemented
    return reduced(op, self, dim, index, fitted(op, src, index), reduce, include_self, op.dtype(self))


@symbolic("aten::index_add", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def index_add(op: Ops, self: Value, dim: int, index: Value, source: Value, alpha: Number = 1) -> Value:
    """Adds slices; stock TorchScript loses repeated ones, stock dynamo adds them in a race between threads.

    Declines: sums of truth values, and of what has no known rank.

    Math: x[..., index[m], ...] += alpha * source[..., m, ...] for every m: the index, spread over the other axes, is
          that of ScatterElements, which adds every repetition; onnxruntime's ScatterND adds in several threads at once.
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


@symbolic("aten::index_reduce", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def index_reduce(
    op: Ops, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces slices into places along an axis; neither exporter has it.

    Declines: tensors without axes.

    Math: torch_onnx_compat.functional.scattering, the index spread over the other axes.
    Schema: index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) ->
            Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_reduce_.html
    """
    rank = op.rank(self)
    if not rank:
        decline("the tensor must have at least one axis")
    places = spread(op, index, dim % rank, rank, source)
    return reduced(op, self, dim % rank, places, source, reduce, include_self, op.dtype(self))


@decomposition(torch.select_scatter, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def select_scatter_to_cat(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with one slice exchanged; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.select_scatter.html
    """
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
    """A copy with a slice exchanged; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.slice_scatter.html
    """
    size = static_size(input, dim)
    if size is not None and all(bound is None or type(bound) is int for bound in (start, end)):
        places = constant(range(*slice(start, end, step).indices(size)), input, torch.int64)
    else:
        places = torch.arange(input.shape[dim], device=input.device)[start:end:step]
    return input.index_copy(dim % input.dim(), places, src)
