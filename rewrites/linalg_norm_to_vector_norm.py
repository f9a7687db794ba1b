"""torch.linalg.norm -> torch.linalg.vector_norm or torch.linalg.matrix_norm.

Math:   an order and two axes, or no axes and a matrix, mean a norm of matrices; everything else is one of vectors.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.norm.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.norms import SPECTRAL, matrix_norm


@rewrite(torch.linalg.norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_norm_to_vector_norm(
    A: Tensor,  # noqa: N803
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Norms of vectors and matrices; stock TorchScript fails where no axis is named, dynamo fixes sizes.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    axes = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    is_matrix = A.dim() == 2 if axes is None else len(axes) == 2
    axes = tuple(range(A.dim())) if axes is None else axes
    if ord is None or not is_matrix:
        norm: Tensor = torch.linalg.vector_norm(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)
        return norm
    if ord in SPECTRAL:
        return NotImplemented  # type: ignore[no-any-return]
    return matrix_norm(A, ord, axes, keepdim, dtype)
