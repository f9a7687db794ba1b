"""aten::index_add -> ScatterElements that adds.

Math:   x[..., index[m], ...] += alpha * source[..., m, ...] for every m: the index, spread over the other axes, is that
        of ScatterElements, which adds every repetition; onnxruntime's ScatterND adds in several threads at once.
Schema: index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.functional.scattering import spread
from torch_onnx_compat.ops import Number


@symbolic("aten::index_add", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def index_add(op: Ops, self: Value, dim: int, index: Value, source: Value, alpha: Number = 1) -> Value:
    """Adds slices; stock TorchScript loses repeated ones, stock dynamo adds them in a race between threads.

    Declines: sums of truth values, and of what has no known rank.
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
