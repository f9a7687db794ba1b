"""aten::index_put, the x[i, mask] = v of tensors -> Where, or ScatterElements that adds.

Math:   torch_onnx_compat.functional.indexing. One value at a mask is a choice between it and x. Adding, every
        repetition of a place counts: ScatterElements adds one update after the other, while onnxruntime's
        ScatterND adds with several threads at once and loses some of many updates of one place.
Schema: index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
"""

from math import prod

import torch

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.functional.indexing import Indexing, added, is_mask


@symbolic("aten::index_put", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def index_put(op: Ops, self: Value, indices: list[Value | None], values: Value, accumulate: bool = False) -> Value:
    """Adds at places, or writes one value at a mask; other writing is left to torch.

    Stock TorchScript loses repeated places, stock dynamo adds them in a race and writes a mask as nine nodes or more.

    Declines: sums of truth values, and of what has no known rank.
    """
    dtype = op.dtype(self)
    given = [index for index in indices if index is not None]
    if not accumulate:
        if len(given) == 1 and is_mask(op, given[0]) and _is_one(op, values):
            return _chosen(op, self, indices, op.cast(values, dtype))
        return NotImplemented
    if dtype == torch.bool:
        decline("truth values have no sum")
    return added(op, Indexing(op, self, indices), op.cast(values, dtype))


def _is_one(op: Ops, values: Value) -> bool:
    shape = op.shape(values)
    return shape is not None and None not in shape and prod(size or 0 for size in shape) == 1


def _chosen(op: Ops, x: Value, indices: list[Value | None], value: Value) -> Value:
    """`value` where the only index, a mask, is true."""
    axis, mask = next((axis, index) for axis, index in enumerate(indices) if index is not None)
    rank, covered = op.rank(x), op.rank(mask)
    if rank is None or covered is None:
        return NotImplemented
    mask = op.cast(mask, torch.bool)
    if axis + covered < rank:
        mask = op.Unsqueeze(mask, list(range(covered, rank - axis)))
    if op.rank(value):
        value = op.Reshape(value, op.constant([], torch.int64))
    return op.Where(mask, value, x)
