"""torch.det of float64 -> the pivots of an elimination, written out.

Math:   the product of the pivots, negative for an odd permutation of rows; torch_onnx_compat.functional.linear_algebra.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.det.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import determinant, small_size


@rewrite((torch.linalg.det, torch.det), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def det_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Determinants of small matrices in double precision, for which onnxruntime has no Det.

    Declines: float64 matrices of more than 8 rows or of no fixed size; out=.
    """
    matrix = input if A is None else A
    assert matrix is not None
    if matrix.dtype != torch.float64:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    return determinant(matrix, small_size(matrix))
