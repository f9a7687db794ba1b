"""aten::scatter with reduce= or a source that is too long -> ScatterElements.

Math:   torch_onnx_compat.functional.scattering
Schema: scatter(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor, and three more
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.scattering import fitted, is_longer

_REDUCTIONS = {"add": "add", "multiply": "mul"}


@symbolic("aten::scatter", needed_on=("torchscript", "dynamo"), opset=(16, 99), exactness=Exactness.ROUNDING)
def scatter(op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str | None = None) -> Value:
    """Adds, multiplies, or writes a part of the source; other writing is left to torch.

    Stock TorchScript refuses reduce=, and both exporters' files fail where the source is longer than the index.
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
