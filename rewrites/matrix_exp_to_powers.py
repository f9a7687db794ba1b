"""torch.linalg.matrix_exp, torch.matrix_exp -> a Taylor polynomial of a small multiple, and squarings.

Math:   torch_onnx_compat.functional.linear_algebra.matrix_exp. torch chooses among polynomials by the matrix's norm.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import matrix_exp
from torch_onnx_compat.tracing import static_size


@rewrite(
    (torch.linalg.matrix_exp, torch.matrix_exp),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=1e-4,
)
def matrix_exp_to_powers(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Exponential of matrices whose norm is at most 500; relative to the largest element of the result.

    Declines: matrices of no fixed size.
    """
    matrix = input if A is None else A
    assert matrix is not None
    size = static_size(matrix, -1)
    if size is None:
        decline("the size of the matrix must be fixed")
    return matrix_exp(matrix, size)
