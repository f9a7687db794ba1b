"""Tensor.fill_diagonal_ -> masked_fill_ of a diagonal mask.

Math:   torch_onnx_compat.functional.diagonals
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.fill_diagonal_.html
"""

from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.diagonals import diagonal_mask
from torch_onnx_compat.tracing import static_size


@rewrite(Tensor.fill_diagonal_, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fill_diagonal_to_where(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number on the diagonal of a matrix, in place; stock TorchScript has none.

    Declines: more than two axes, and wrap=True of a matrix that may be tall.
    """
    if self.dim() != 2:
        decline(f"the tensor must have two axes, got {self.dim()}")
    fixed = static_size(self, 0), static_size(self, 1)
    rows, columns = (self.shape[dim] if size is None else size for dim, size in enumerate(fixed))
    mask = diagonal_mask(rows, columns, 0, self)
    if wrap and None in fixed:
        decline("wrap=True needs fixed sizes")
    if wrap:
        for start in range(columns + 1, rows, columns + 1):
            mask = mask | diagonal_mask(rows, columns, -start, self)
    return self.masked_fill_(mask, fill_value)
