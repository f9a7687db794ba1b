"""aten::scatter_add of a source that is too long -> ScatterElements of its part.

Schema: scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.scattering import fitted, is_longer


@symbolic("aten::scatter_add", needed_on=("dynamo",), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter_add(op: Ops, self: Value, dim: int, index: Value, src: Value) -> Value:
    """Adds the part of the source that has places; stock dynamo's file fails on it. The rest is left to torch."""
    if not op.rank(self) or not is_longer(op, src, index):
        return NotImplemented
    return op.ScatterElements(self, index, fitted(op, src, index), axis=dim, reduction="add")
