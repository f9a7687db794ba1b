"""torch.linalg.matrix_norm -> the largest or smallest sum of magnitudes.

Math:   torch_onnx_compat.functional.norms.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.norms import SPECTRAL, matrix_norm


@rewrite(torch.linalg.matrix_norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def matrix_norm_to_sum(
    A: Tensor,  # noqa: N803
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Norms of matrices other than "nuc", 2 and -2; stock dynamo fixes sizes, TorchScript loses the dtype.

    Declines: out=.
    """
    if ord in SPECTRAL:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    return matrix_norm(A, ord, dim, keepdim, dtype)
