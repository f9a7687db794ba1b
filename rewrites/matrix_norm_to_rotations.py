"""Spectral and nuclear norms -> singular values by Jacobi's rotations, written out.

Math:   the largest, the smallest, or the sum of the singular values; torch_onnx_compat.functional.jacobi.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.jacobi import singular_values, small_sides
from torch_onnx_compat.functional.norms import SPECTRAL


# float32, relative to the largest singular value, as svdvals_to_rotations.
@rewrite(
    (torch.linalg.matrix_norm, torch.linalg.norm),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=1e-5,
)
def matrix_norm_to_rotations(
    A: Tensor,  # noqa: N803
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Norms "nuc", 2 and -2 of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones; out=.
    """
    if ord not in SPECTRAL or isinstance(dim, int) or (dim is not None and len(dim) != 2):
        return NotImplemented  # type: ignore[no-any-return]
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    if dim is None and A.dim() == 1:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    first, second = (axis % A.dim() for axis in dim or (-2, -1))
    rows, columns = small_sides(A, (first, second))
    matrix = A.movedim((first, second), (-2, -1))
    values = singular_values(matrix if dtype is None else matrix.to(dtype), rows, columns)
    norm = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    if keepdim:
        norm = norm.unsqueeze(min(first, second)).unsqueeze(max(first, second))
    return norm
