"""torch.linalg.matrix_power, torch.matrix_power -> products.

Math:   squaring and multiplying by the digits of the exponent; a negative power is one of the inverse.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import identity, inverse, small_size
from torch_onnx_compat.tracing import static_size


@rewrite(
    (torch.linalg.matrix_power, torch.matrix_power),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def matrix_power_to_matmul(
    A: Tensor | None = None,  # noqa: N803
    n: int = 1,
    *,
    input: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Whole powers of matrices; neither exporter has the operator.

    Declines: power 0 of matrices of no fixed size; negative powers of such, or of more than 8 rows; out=.
    """
    matrix = input if A is None else A
    assert matrix is not None
    if out is not None:
        decline("out must be None, got a tensor")
    if n == 0:
        size = static_size(matrix, -1)
        if size is None:
            decline("the size of the matrix must be fixed for power 0")
        return torch.zeros_like(matrix) + identity(size, matrix)
    square = inverse(matrix, small_size(matrix)) if n < 0 else matrix
    digits = f"{abs(n):b}"[::-1]
    product = None
    for position, digit in enumerate(digits):
        if digit == "1":
            product = square if product is None else square @ product
        if position + 1 < len(digits):
            square = square @ square
    assert product is not None
    return product.clone() if n == 1 else product
