"""Small linear systems: triangular and Cholesky factors, determinants, inverses, QR, least squares."""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.linear_algebra import (
    cholesky,
    cholesky_with_info,
    common_batch,
    determinant,
    identity,
    inverse,
    inverse_with_info,
    is_vector,
    log_determinant,
    qr,
    small_size,
    solve,
    solve_triangular,
)
from torch_onnx_compat.tracing import constant


@decomposition((torch.linalg.det, torch.det), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def det_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Determinants of small matrices in double precision, for which onnxruntime has no Det.

    Declines: float64 matrices of more than 8 rows or of no fixed size.

    Math: the product of the pivots, negative for an odd permutation of rows;
          torch_onnx_compat.functional.linear_algebra.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.det.html
    """
    matrix = input if A is None else A
    assert matrix is not None
    if matrix.dtype != torch.float64:
        return NotImplemented
    return determinant(matrix, small_size(matrix))


@decomposition((torch.linalg.slogdet, torch.slogdet), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def slogdet_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Any:  # noqa: N803
    """Sign and logarithm of the determinant of small matrices; neither exporter has the operator.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.log_determinant.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
    """
    matrix = input if A is None else A
    assert matrix is not None
    return torch.return_types.linalg_slogdet(log_determinant(matrix, small_size(matrix)))  # type: ignore[attr-defined]


@decomposition(torch.logdet, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logdet_to_elimination(input: Tensor) -> Tensor:
    """Logarithm of the determinant of small matrices, also where the determinant itself is beyond the floats.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.log_determinant; NaN where the determinant is negative.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.logdet.html
    """
    sign, logarithm = log_determinant(input, small_size(input))
    return torch.where(sign < 0, constant(float("nan"), logarithm), logarithm)


@decomposition((torch.linalg.inv, torch.inverse), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def inv_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Inverse of small matrices; that of a singular one, which torch refuses, has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html
    """
    matrix = input if A is None else A
    assert matrix is not None
    return inverse(matrix, small_size(matrix))


@decomposition(torch.linalg.inv_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def inv_ex_to_elimination(A: Tensor, *, check_errors: bool = False) -> Any:  # noqa: N803
    """Inverse of small matrices; where info is not 0, torch's inverse holds other numbers, this one infinities or NaN.

    A pivot that is 0 but for rounding may be counted otherwise than by LAPACK.
    With check_errors, which makes torch raise for a singular matrix, the file raises nothing.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does. info
          is the 1-based number of the first pivot that is 0, or 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
    """
    return torch.return_types.linalg_inv_ex(inverse_with_info(A, small_size(A)))  # type: ignore[attr-defined]


@decomposition(torch.linalg.solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def solve_to_elimination(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803
    """Solves small systems; what torch refuses, a singular matrix, gives infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.solve: rows are chosen by partial pivoting, as LAPACK does. X A =
          B is A^T X^T = B^T.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html
    """
    size = small_size(A)
    if is_vector(A, B):
        columns = B.unsqueeze(-1)
        return solve(A, columns if B.dim() == A.dim() - 1 else columns + torch.zeros_like(A[..., :1]), size).squeeze(-1)
    matrix, right = common_batch(A, B)
    if left:
        return solve(matrix, right, size)
    return solve(matrix.transpose(-2, -1), right.transpose(-2, -1), size).transpose(-2, -1)


@decomposition(torch.linalg.solve_triangular, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def solve_triangular_to_substitution(
    input: Tensor,
    B: Tensor,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """Solves small triangular systems.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.solve_triangular; X A = B is A^T X^T = B^T.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve_triangular.html
    """
    size = small_size(input)
    matrix, right = common_batch(input, B)
    if left:
        return solve_triangular(matrix, right, size, upper=upper, unit=unitriangular)
    matrix, right = matrix.transpose(-2, -1), right.transpose(-2, -1)
    return solve_triangular(matrix, right, size, upper=not upper, unit=unitriangular).transpose(-2, -1)


@decomposition(torch.triangular_solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def triangular_solve_to_substitution(
    b: Tensor,
    A: Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """Solves small triangular systems.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.solve_triangular.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.triangular_solve.html
    """
    size = small_size(A)
    matrix, right = common_batch(A, b)
    given = matrix.transpose(-2, -1) if transpose else matrix
    solution = solve_triangular(given, right, size, upper=upper != transpose, unit=unitriangular)
    return torch.return_types.triangular_solve((solution, matrix))


@decomposition(torch.linalg.cholesky, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_to_columns(input: Tensor, *, upper: bool = False) -> Tensor:
    """Factor of small positive definite matrices; of others, which torch refuses, it has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.cholesky. The upper factor is the lower one of the transposed
          matrix, transposed, so that it is the upper triangle that is read, as torch does.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky.html
    """
    size = small_size(input)
    if upper:
        return cholesky(input.transpose(-2, -1), size).transpose(-2, -1)
    return cholesky(input, size)


@decomposition(torch.linalg.cholesky_ex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_ex_to_columns(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Factor of small matrices; from the row that info names on it holds infinities or NaN, torch's other numbers.

    A minor that is singular but for rounding may be counted otherwise than by LAPACK.
    With check_errors, which makes torch raise where info is not 0, the file raises nothing.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.cholesky. info is the size of the first leading minor that is not
          positive definite, or 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html
    """
    size = small_size(input)
    factor, info = cholesky_with_info(input.transpose(-2, -1) if upper else input, size)
    factor = factor.transpose(-2, -1) if upper else factor
    return torch.return_types.linalg_cholesky_ex((factor, info))  # type: ignore[attr-defined]


@decomposition(torch.cholesky_inverse, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_inverse_to_substitution(L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """Inverse of small matrices whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size.

    Math: the inverse of L L^T is M^T M, M being the inverse of L.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_inverse.html
    """
    size = small_size(L)
    lower = L.transpose(-2, -1) if upper else L
    right = torch.zeros_like(lower) + identity(size, lower)
    half = solve_triangular(lower, right, size, upper=False)
    return half.transpose(-2, -1) @ half


@decomposition(torch.cholesky_solve, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cholesky_solve_to_substitution(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """Solves small systems whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size.

    Math: L L^T X = B: L Y = B, then L^T X = Y.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_solve.html
    """
    size = small_size(L)
    factor, right = common_batch(L, B)
    lower = factor.transpose(-2, -1) if upper else factor
    half = solve_triangular(lower, right, size, upper=False)
    return solve_triangular(lower.transpose(-2, -1), half, size, upper=True)


@decomposition(torch.linalg.qr, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def qr_to_reflections(A: Tensor, mode: str = "reduced") -> Any:  # noqa: N803
    """Factors of small matrices, with the signs that torch gives on the CPU.

    Declines: matrices of more than 8 rows or columns, or of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.qr: the signs are LAPACK's.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.qr.html
    """
    rows, columns = small_size(A, -2), small_size(A, -1)
    orthogonal, upper = qr(A, rows, columns)
    if mode != "complete":
        orthogonal, upper = orthogonal[..., : min(rows, columns)], upper[..., : min(rows, columns), :]
    if mode == "r":
        orthogonal = torch.zeros(0, dtype=A.dtype, device=A.device)
    return torch.return_types.linalg_qr((orthogonal, upper))  # type: ignore[attr-defined]


@decomposition(torch.linalg.lstsq, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def lstsq_to_qr(input: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:  # noqa: N803
    """Solves small systems of full rank; columns that depend on one another give infinities or NaN.

    The residuals, the rank and the singular values come empty, as from driver="gels" of a square matrix.

    Declines: matrices of more than 8 rows or columns, of no fixed size, or with fewer rows than columns; an rcond.

    Math: for a matrix A = Q R of full rank with no fewer rows than columns, A X = B is solved best by R X = Q^T B.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
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


_L = torch.linalg


@decomposition(
    (
        *(_L.eig, _L.eigvals, _L.lu, _L.lu_factor, _L.lu_factor_ex, _L.lu_solve, _L.ldl_factor, _L.ldl_factor_ex),
        *(_L.ldl_solve, _L.matrix_rank, _L.cond, torch.lu_solve, torch.geqrf, torch.ormqr, torch.lobpcg),
    ),
    needed_on=("torchscript", "dynamo"),
)
def factorisation_outside(*_: Any, **__: Any) -> Any:
    """Says of factorisations that neither exporter writes what can be done.

    Declines: always.

    Math: there is no short sequence of ONNX operators for them.
    Source: https://docs.pytorch.org/docs/stable/linalg.html
    """
    decline(
        "ONNX has no operator for this factorisation; solve small systems by torch.linalg.solve, take eigh for "
        "symmetric matrices, or compute it outside of the file"
    )
