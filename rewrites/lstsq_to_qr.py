"""torch.linalg.lstsq -> the QR factors of the matrix, by reflections, and substitution.

Math:   for a matrix A = Q R of full rank with no fewer rows than columns, A X = B is solved best by R X = Q^T B.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.linear_algebra import common_batch, qr, small_size, solve_triangular


@rewrite(torch.linalg.lstsq, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def lstsq_to_qr(input: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:  # noqa: N803
    """Solves small systems of full rank; columns that depend on one another give infinities or NaN.

    The residuals, the rank and the singular values come empty, as from driver="gels" of a square matrix.

    Declines: matrices of more than 8 rows or columns, of no fixed size, or with fewer rows than columns; an rcond.
    """
    if rcond is not None:
        decline(f"rcond must be None, got {rcond}; full rank is taken for granted")
    rows, columns = small_size(input, -2), small_size(input, -1)
    if rows < columns:
        decline(f"the matrix must have as many rows as columns at least, got {rows} x {columns}")
    matrix, right = common_batch(input, B)
    orthogonal, upper = qr(matrix, rows, columns)
    projected = orthogonal[..., :columns].transpose(-2, -1) @ right
    solution = solve_triangular(upper[..., :columns, :], projected, columns, upper=True)
    nothing = torch.zeros(0, dtype=input.dtype, device=input.device)
    return torch.return_types.linalg_lstsq((solution, nothing, nothing.to(torch.int64), nothing))  # type: ignore[attr-defined]
