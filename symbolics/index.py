"""aten::index, the x[i, :, j] of tensors -> Gather or GatherND.

Math:   torch_onnx_compat.functional.indexing: with the indexed axes in front, GatherND of the indices side by side.
Schema: index(Tensor self, Tensor?[] indices) -> Tensor
Source: https://docs.pytorch.org/docs/stable/tensor_view.html; https://onnx.ai/onnx/operators/onnx__GatherND.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.indexing import Indexing, is_mask


@symbolic("aten::index", needed_on=("torchscript",), opset=(15, 99), exactness=Exactness.BITWISE)
def index(op: Ops, self: Value, indices: list[Value | None]) -> Value:
    """Reads at places; stock TorchScript reads elsewhere where one of several indices is negative.

    Declines: what has no known rank.
    """
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if not given:
        return self
    axis, only = given[0]
    if len(given) == 1 and not is_mask(op, only):
        return op.Gather(self, op.cast(only, torch.int64), axis=axis)
    if len(given) == 1 and op.rank(only) == 1:
        return op.Compress(self, op.cast(only, torch.bool), axis=axis)
    if len(given) == 1 and axis == 0:
        return op.GatherND(self, op.Transpose(op.NonZero(op.cast(only, torch.bool)), perm=[1, 0]))
    indexing = Indexing(op, self, indices)
    return indexing.ordered(op.GatherND(indexing.front, indexing.places()))
