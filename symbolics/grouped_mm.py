"""aten::_grouped_mm -> a MatMul for each group.

Math:   torch_onnx_compat.functional.grouping
Schema: _grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None)
        -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html
"""

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.functional.grouping import grouped_products


@symbolic("aten::_grouped_mm", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def grouped_mm(
    op: Ops,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: int | None = None,
) -> Value:
    """Multiplies groups of rows by a matrix each, as mixtures of experts do.

    Declines: groups of columns or of the axis that is summed; another dtype for the result; a number of groups that
    varies. (torch itself takes no bias.)
    """
    if op.rank(self) == op.rank(mat2) == 3 and offs is None:
        return op.MatMul(self, mat2)
    if op.rank(self) != 2 or op.rank(mat2) != 3 or offs is None:
        decline("groups must be of rows: an operand (S, K) by one (G, K, N), with offsets")
    if out_dtype is not None:
        decline("out_dtype must be left out")
    return grouped_products(op, self, mat2, offs)
