"""torch.linalg.inv, torch.inverse -> Gauss-Jordan elimination, written out.

Math:   torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import inverse, small_size


@rewrite((torch.linalg.inv, torch.inverse), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def inv_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Inverse of small matrices; that of a singular one, which torch refuses, has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size; out=.
    """
    matrix = input if A is None else A
    assert matrix is not None
    if out is not None:
        decline("out must be None, got a tensor")
    return inverse(matrix, small_size(matrix))
