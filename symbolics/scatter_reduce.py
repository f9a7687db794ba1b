"""aten::scatter_reduce -> ScatterElements, two or four of them for means and where self does not count.

Math:   torch_onnx_compat.functional.scattering
Schema: scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.scattering import fitted, reduced


@symbolic("aten::scatter_reduce", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter_reduce(
    op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """Reduces into places; stock TorchScript refuses means and include_self=False, stock dynamo errs on means.

    Tensors without axes are left to torch, as are maxima and minima before opset 18, of which ONNX has none.
    """
    if not op.rank(self) or (op.opset < 18 and include_self and reduce in ("amax", "amin")):
        return NotImplemented
    return reduced(op, self, dim, index, fitted(op, src, index), reduce, include_self, op.dtype(self))
