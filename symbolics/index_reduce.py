"""aten::index_reduce -> ScatterElements with a reduction.

Math:   torch_onnx_compat.functional.scattering, the index spread over the other axes.
Schema: index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_reduce_.html
"""

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.functional.scattering import reduced, spread


@symbolic("aten::index_reduce", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def index_reduce(
    op: Ops, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces slices into places along an axis; neither exporter has it.

    Declines: tensors without axes.
    """
    rank = op.rank(self)
    if not rank:
        decline("the tensor must have at least one axis")
    places = spread(op, index, dim % rank, rank, source)
    return reduced(op, self, dim % rank, places, source, reduce, include_self, op.dtype(self))
