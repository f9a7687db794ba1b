"""Small linear systems: determinants, inverses, solutions, Cholesky and QR factors, least squares.

Each algorithm is written out for a fixed number of rows, at most 8.

Math: torch_onnx_compat.functional.linear_algebra: elimination with partial pivoting, by which rows are chosen as LAPACK
      does; substitution; Householder reflections. X A = B is solved as A^T X^T = B^T. Upper Cholesky factors are lower
      ones of the transposed matrix, transposed.
"""

from typing import Any

import torch
from torch import Tensor, linalg

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
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

ELIMINATION = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)


def _matrix(A: Tensor | None, input: Tensor | None) -> Tensor:  # noqa: N803
    """The matrix, which torch.linalg's functions call A and torch's call input."""
    matrix = input if A is None else A
    assert matrix is not None
    return matrix


def _transpose(matrix: Tensor) -> Tensor:
    return matrix.transpose(-2, -1)


def _transpose_if(condition: bool, matrix: Tensor) -> Tensor:
    return _transpose(matrix) if condition else matrix


# Determinants


@decomposition((linalg.det, torch.det), **ELIMINATION)
def det_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Determinants of small matrices in double precision, for which onnxruntime has no Det.

    Declines: float64 matrices of more than 8 rows or of no fixed size.

    Math: the product of the pivots, negative for an odd permutation of rows.
    """
    matrix = _matrix(A, input)
    if matrix.dtype != torch.float64:
        return NotImplemented
    return determinant(matrix, small_size(matrix))


@decomposition((linalg.slogdet, torch.slogdet), **ELIMINATION)
def slogdet_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Any:  # noqa: N803
    """Sign and logarithm of the determinant of small matrices; neither exporter has the operator.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    matrix = _matrix(A, input)
    return torch.return_types.linalg_slogdet(log_determinant(matrix, small_size(matrix)))  # type: ignore[attr-defined]


@decomposition(torch.logdet, **ELIMINATION)
def logdet_to_elimination(input: Tensor) -> Tensor:
    """Logarithm of the determinant of small matrices, also where the determinant itself overflows or vanishes.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: NaN where the determinant is negative.
    """
    sign, logarithm = log_determinant(input, small_size(input))
    return torch.where(sign < 0, constant(float("nan"), logarithm), logarithm)


# Inverses and solutions


@decomposition((linalg.inv, torch.inverse), **ELIMINATION)
def inv_to_elimination(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Inverse of small matrices; that of a singular one, which torch refuses, has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    matrix = _matrix(A, input)
    return inverse(matrix, small_size(matrix))


@decomposition(linalg.inv_ex, **ELIMINATION)
def inv_ex_to_elimination(A: Tensor, *, check_errors: bool = False) -> Any:  # noqa: N803
    """Inverse of small matrices; where info is not 0, torch's inverse holds other numbers, this one infinities or NaN.

    A pivot that is 0 but for rounding may be counted otherwise than by LAPACK.
    With check_errors, torch raises an error for a singular matrix; the file does not.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: info is the 1-based number of the first pivot that is 0, or 0.
    """
    return torch.return_types.linalg_inv_ex(inverse_with_info(A, small_size(A)))  # type: ignore[attr-defined]


@decomposition(linalg.solve, **ELIMINATION)
def solve_to_elimination(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803
    """Solves small systems; what torch refuses, a singular matrix, gives infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    size = small_size(A)
    if is_vector(A, B):
        columns = B.unsqueeze(-1)
        return solve(A, columns if B.dim() == A.dim() - 1 else columns + torch.zeros_like(A[..., :1]), size).squeeze(-1)
    matrix, right = common_batch(A, B)
    if left:
        return solve(matrix, right, size)
    return _transpose(solve(_transpose(matrix), _transpose(right), size))


# Triangular systems


@decomposition(linalg.solve_triangular, **ELIMINATION)
def solve_triangular_to_substitution(
    input: Tensor,
    B: Tensor,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """Solves small triangular systems; neither exporter has the operator.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    size = small_size(input)
    matrix, right = common_batch(input, B)
    if left:
        return solve_triangular(matrix, right, size, upper=upper, unit=unitriangular)
    matrix, right = _transpose(matrix), _transpose(right)
    return _transpose(solve_triangular(matrix, right, size, upper=not upper, unit=unitriangular))


@decomposition(torch.triangular_solve, **ELIMINATION)
def triangular_solve_to_substitution(
    b: Tensor,
    A: Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """Solves small triangular systems with torch's older function.

    Declines: matrices of more than 8 rows or of no fixed size.
    """
    size = small_size(A)
    matrix, right = common_batch(A, b)
    given = _transpose_if(transpose, matrix)
    solution = solve_triangular(given, right, size, upper=upper != transpose, unit=unitriangular)
    return torch.return_types.triangular_solve((solution, matrix))


# Cholesky factors


@decomposition(linalg.cholesky, **ELIMINATION)
def cholesky_to_columns(input: Tensor, *, upper: bool = False) -> Tensor:
    """Factor of small positive definite matrices; of others, which torch refuses, it has infinities or NaN.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: of the transposed matrix for an upper factor, so that the upper triangle is read, as in torch.
    """
    size = small_size(input)
    return _transpose_if(upper, cholesky(_transpose_if(upper, input), size))


@decomposition(linalg.cholesky_ex, **ELIMINATION)
def cholesky_ex_to_columns(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Factor of small matrices; from the row that info names on it holds infinities or NaN, torch's other numbers.

    A minor that is singular but for rounding may be counted otherwise than by LAPACK.
    With check_errors, torch raises an error where info is not 0; the file does not.

    Declines: matrices of more than 8 rows or of no fixed size.

    Math: info is the size of the first leading minor that is not positive definite, or 0.
    """
    size = small_size(input)
    factor, info = cholesky_with_info(_transpose_if(upper, input), size)
    return torch.return_types.linalg_cholesky_ex((_transpose_if(upper, factor), info))  # type: ignore[attr-defined]


@decomposition(torch.cholesky_inverse, **ELIMINATION)
def cholesky_inverse_to_substitution(L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """Inverse of small matrices whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size.

    Math: the inverse of L L^T is M^T M, M being the inverse of L.
    """
    size = small_size(L)
    lower = _transpose_if(upper, L)
    right = torch.zeros_like(lower) + identity(size, lower)
    half = solve_triangular(lower, right, size, upper=False)
    return _transpose(half) @ half


@decomposition(torch.cholesky_solve, **ELIMINATION)
def cholesky_solve_to_substitution(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """Solves small systems whose Cholesky factor is known.

    Declines: factors of more than 8 rows or of no fixed size.

    Math: L L^T X = B: L Y = B, then L^T X = Y.
    """
    size = small_size(L)
    factor, right = common_batch(L, B)
    lower = _transpose_if(upper, factor)
    half = solve_triangular(lower, right, size, upper=False)
    return solve_triangular(_transpose(lower), half, size, upper=True)


# QR factors


@decomposition(linalg.qr, **ELIMINATION)
def qr_to_reflections(A: Tensor, mode: str = "reduced") -> Any:  # noqa: N803
    """Factors of small matrices, with the signs that torch gives on the CPU.

    Declines: matrices of more than 8 rows or columns, or of no fixed size.

    Math: Householder reflections; the signs are LAPACK's.
    """
    rows, columns = small_size(A, -2), small_size(A, -1)
    orthogonal, upper = qr(A, rows, columns)
    if mode != "complete":
        orthogonal, upper = orthogonal[..., : min(rows, columns)], upper[..., : min(rows, columns), :]
    if mode == "r":
        orthogonal = torch.zeros(0, dtype=A.dtype, device=A.device)
    return torch.return_types.linalg_qr((orthogonal, upper))  # type: ignore[attr-defined]


@decomposition(linalg.lstsq, **ELIMINATION)
def lstsq_to_qr(input: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:  # noqa: N803
    """Solves small systems of full rank, or of zeros; columns that depend on one another give any numbers or NaN.

    The residuals, the rank and the singular values come empty, as from driver="gels" of a square matrix.

    Declines: matrices of more than 8 rows or columns, of no fixed size, or with fewer rows than columns; an rcond.

    Math: for a matrix A = Q R of full rank with no fewer rows than columns, A X = B is solved best by R X = Q^T B.
    """
    if rcond is not None:
        decline(f"rcond must be None, got {rcond}; full rank is taken for granted")
    rows, columns = small_size(input, -2), small_size(input, -1)
    if rows < columns:
        decline(f"the matrix must have as many rows as columns at least, got {rows} x {columns}")
    matrix, right = common_batch(input, B)
    orthogonal, upper = qr(matrix, rows, columns)
    projected = _transpose(orthogonal[..., :columns]) @ right
    solution = solve_triangular(upper[..., :columns, :], projected, columns, upper=True)
    is_zero = (matrix == 0).flatten(-2).all(-1)[..., None, None]  # LAPACK's answer is zero then, by any driver
    solution = torch.where(is_zero, torch.zeros_like(solution), solution)
    nothing = torch.zeros(0, dtype=input.dtype, device=input.device)
    return torch.return_types.linalg_lstsq((solution, nothing, nothing.to(torch.int64), nothing))  # type: ignore[attr-defined]


# Factorisations that ONNX lacks

EIGENVALUES = (linalg.eig, linalg.eigvals)
LU = (linalg.lu, linalg.lu_factor, linalg.lu_factor_ex, linalg.lu_solve)
LDL = (linalg.ldl_factor, linalg.ldl_factor_ex, linalg.ldl_solve)
RANK = (linalg.matrix_rank, linalg.cond)
OTHERS = (torch.lu_solve, torch.geqrf, torch.ormqr, torch.lobpcg)


@decomposition((*EIGENVALUES, *LU, *LDL, *RANK, *OTHERS), needed_on=("torchscript", "dynamo"))
def factorisation_outside(*_: Any, **__: Any) -> Any:
    """Declines factorisations that neither exporter writes, and says what to do instead.

    Declines: always.

    Math: there is no short sequence of ONNX operators for them.
    Source: https://docs.pytorch.org/docs/stable/linalg.html
    """
    decline(
        "ONNX has no operator for this factorisation; solve small systems by torch.linalg.solve, take eigh for "
        "symmetric matrices, or compute it outside of the file"
    )
