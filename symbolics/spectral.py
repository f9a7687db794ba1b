"""Eigenvalues, singular values and the norms that rest on them, of small matrices and of batches of them.

Jacobi's rotations are written out, all of them.

Math:   a rotation of columns p and q makes one element beside the diagonal 0; sweeps over all pairs converge
        quadratically. Pairs without a common column are turned at once. Singular values come from turning the columns
        of the matrix itself until they are orthogonal, which is as accurate for the small ones as for the large.
Source: Golub and Van Loan, Matrix Computations, sections 8.5 (Jacobi) and 8.6.3 (one-sided)
"""

# ruff: noqa: N803 - the arguments have torch's names

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.functional.linear_algebra import MAX_SIZE, identity, qr, small_size
from torch_onnx_compat.tracing import constant, static_size

ROTATIONS = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
"""Found in float32, in 2000 matrices of each size and of nine kinds, relative to the largest value or element: at most
7e-6 in eigh and eigvalsh, 4e-6 in svd, 2e-6 in svdvals and the norms; in pinv 3e-6 times the condition number."""

EIGEN_SWEEPS = {1: 0, 2: 1, 3: 4, 4: 5, 5: 6, 6: 6, 7: 7, 8: 7}
SINGULAR_SWEEPS = {1: 0, 2: 2, 3: 4, 4: 5, 5: 7, 6: 7, 7: 8, 8: 8}
"""By size: what random, graded, close and repeated spectra need in float32 (tests/symbolics/test_spectral.py)."""

SPECTRAL = ("nuc", 2, -2)
"""Orders that are norms of the singular values."""


# Arguments


def check_real(matrix: Any) -> None:
    """Declines complex matrices, as torch has them and as pairs."""
    if is_complex(matrix):
        decline("the matrix must be real; ONNX has no complex tensors")


def small_sides(matrix: Tensor, dim: Sequence[int] = (-2, -1)) -> tuple[int, int]:
    """Rows and columns of the argument of an entry's body, one of which is small.

    Raises:
        Declined: They are not fixed, or both larger than MAX_SIZE.
    """
    rows, columns = (static_size(matrix, axis) for axis in dim)
    if rows is None or columns is None:
        decline("the size of the matrix must be fixed; export with only the batch axis dynamic")
    if not 1 <= min(rows, columns) <= MAX_SIZE:
        decline(
            f"matrices must have 1 to {MAX_SIZE} rows or columns, got {rows} x {columns}; ONNX has no operator for "
            f"it, so compute it outside of the file, or before the export if it does not depend on an input"
        )
    return rows, columns


def symmetric_of(triangle: Tensor, size: int, uplo: str) -> Tensor:
    """The symmetric matrix of which only one triangle, "L" or "U", is read."""
    lower = constant(np.tri(size, dtype=bool), triangle, torch.bool)
    transposed = triangle.transpose(-2, -1)
    return torch.where(lower, triangle, transposed) if uplo.upper() == "L" else torch.where(lower, transposed, triangle)


# Rotations


def pair_columns(size: int) -> list[list[tuple[int, int]]]:
    """All pairs of columns, in rounds of disjoint ones, as in a tournament."""
    players = list(range(size + size % 2))
    rounds = []
    for _ in range(len(players) - 1):
        pairs = [(players[i], players[-1 - i]) for i in range(len(players) // 2)]
        rounds.append([(min(pair), max(pair)) for pair in pairs if max(pair) < size])
        players = [players[0], players[-1], *players[1:-1]]
    return rounds


def rotation(symmetric: Tensor, size: int, pairs: list[tuple[int, int]]) -> Tensor:
    """The orthogonal matrix that makes a[p, q] zero for each of these disjoint pairs p < q.

    For a pair, tan = 2 a[p, q] / (d +- sqrt(d^2 + 4 a[p, q]^2)) with d = a[q, q] - a[p, p], the smaller root of two.
    """
    difference, doubled, sign = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    chosen = np.zeros((size, size))
    for p, q in pairs:
        for row in (p, q):
            difference[row, q], difference[row, p], doubled[row, p] = 1, -1, 2
        chosen[p, q], sign[p, q], sign[q, p] = 1, 1, -1
    one = identity(size, symmetric)
    d = constant(difference, symmetric) @ (symmetric * one).sum(-1, keepdim=True)
    beside = constant(doubled, symmetric) @ (symmetric * constant(chosen, symmetric)).sum(-1, keepdim=True)
    root = torch.sqrt(d * d + beside * beside)
    safe = torch.where(root > 0, root, constant(1.0, symmetric))  # not root + tiny, which optimisers take for root
    tangent = beside / (d + torch.where(d < 0, -safe, safe))
    cosine = 1 / torch.sqrt(1 + tangent * tangent)
    return cosine * one + (cosine * tangent) * constant(sign, symmetric)


def orthogonal_columns(matrix: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """W, orthogonal V and the scale (..., 1, 1) for which W * scale = matrix @ V has orthogonal columns.

    Args:
        matrix: (..., rows, columns) with no fewer rows than columns.
        columns: A fixed number.
    """
    scale = _scale(matrix)
    turned = matrix / scale
    vectors = torch.zeros_like(turned[..., :1, :]).transpose(-2, -1) + identity(columns, matrix)
    for pairs in pair_columns(columns) * SINGULAR_SWEEPS[columns]:
        turn = rotation(turned.transpose(-2, -1) @ turned, columns, pairs)
        turned, vectors = turned @ turn, vectors @ turn
    return turned, vectors, scale


def _scale(matrix: Tensor) -> Tensor:
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    return torch.where(largest > 0, largest, torch.ones_like(largest))


def _lengths(columns: Tensor) -> Tensor:
    return torch.sqrt((columns * columns).sum(-2))


def _permute(columns: Tensor, order: Tensor, size: int) -> Tensor:
    number = constant(np.arange(size)[:, None], order, torch.int64)
    return columns @ (number == order.unsqueeze(-2)).to(columns.dtype)


def _largest(vectors: Tensor) -> Tensor:
    """The largest element of each column in magnitude, with its sign."""
    high, low = vectors.amax(-2, keepdim=True), vectors.amin(-2, keepdim=True)
    return torch.where(high < -low, low, high)


# Eigenvalues


def eigh(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues and eigenvectors of symmetric (..., size, size).

    The largest element of each vector, in magnitude, is positive.
    """
    scale = _scale(matrix)
    rest = matrix / scale
    vectors = torch.zeros_like(matrix) + identity(size, matrix)
    for pairs in pair_columns(size) * EIGEN_SWEEPS[size]:
        turn = rotation(rest, size, pairs)
        rest = turn.transpose(-2, -1) @ rest @ turn
        vectors = vectors @ turn
    values = (rest * identity(size, matrix)).sum(-1) * scale.squeeze(-1)
    values, order = torch.sort(values, -1)
    vectors = _permute(vectors, order, size)
    return values, torch.where(_largest(vectors) < 0, -vectors, vectors)


@decomposition(torch.linalg.eigh, **ROTATIONS)
def eigh_to_rotations(A: Tensor, UPLO: str = "L") -> Any:
    """Ascending eigenvalues and eigenvectors of small symmetric matrices.

    The signs of vectors are not LAPACK's: the largest element of each, in magnitude, is positive here. Of a repeated
    eigenvalue the vectors are some orthogonal ones. Vectors are off by the error divided by the gap to the next value.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones.
    """
    check_real(A)
    size = small_size(A)
    return torch.return_types.linalg_eigh(eigh(symmetric_of(A, size, UPLO), size))  # type: ignore[attr-defined]


@decomposition(torch.linalg.eigvalsh, **ROTATIONS)
def eigvalsh_to_rotations(A: Tensor, UPLO: str = "L") -> Tensor:
    """Ascending eigenvalues of small symmetric matrices.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones.
    """
    check_real(A)
    size = small_size(A)
    return eigh(symmetric_of(A, size, UPLO), size)[0]


# Singular values


def svd(matrix: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Complete U, descending singular values and complete V of (..., rows, columns).

    The largest element of each column of V, in magnitude, is positive; for fewer rows than columns that of U.
    """
    if rows < columns:
        right, values, left = svd(matrix.transpose(-2, -1), columns, rows)
        return left, values, right
    turned, vectors, scale = orthogonal_columns(matrix, columns)
    values, order = torch.sort(_lengths(turned), -1, descending=True)
    vectors = _permute(vectors, order, columns)
    largest = _largest(vectors)
    vectors = torch.where(largest < 0, -vectors, vectors)
    turned = _permute(turned, order, columns)
    turned = torch.where(largest < 0, -turned, turned)
    left, upper = qr(turned, rows, columns)
    is_flipped = (upper[..., :columns, :] * identity(columns, matrix)).sum(-1) < 0
    if rows > columns:
        is_flipped = torch.cat((is_flipped, torch.zeros_like(left[..., 0, columns:], dtype=torch.bool)), -1)
    return torch.where(is_flipped.unsqueeze(-2), -left, left), values * scale.squeeze(-1), vectors


def singular_values(matrix: Tensor, rows: int, columns: int) -> Tensor:
    """Singular values of (..., rows, columns) in no order."""
    tall = matrix.transpose(-2, -1) if rows < columns else matrix
    turned, _, scale = orthogonal_columns(tall, min(rows, columns))
    return _lengths(turned) * scale.squeeze(-1)


def pinv(matrix: Tensor, rows: int, columns: int, *, atol: float, rtol: float) -> Tensor:
    """Pseudoinverse of (..., rows, columns); singular values up to max(atol, rtol * the largest) count as zero."""
    if rows < columns:
        transposed = matrix.transpose(-2, -1)
        return pinv(transposed, columns, rows, atol=atol, rtol=rtol).transpose(-2, -1)
    turned, vectors, scale = orthogonal_columns(matrix, columns)
    lengths = _lengths(turned).unsqueeze(-2)
    limit = lengths.amax(-1, keepdim=True) * rtol
    if atol:
        limit = torch.maximum(limit, atol / scale)
    counts = lengths > limit
    one, zero = constant(1.0, matrix), constant(0.0, matrix)
    factor = torch.where(counts, 1 / torch.where(counts, lengths * scale, one), zero)
    unit = torch.where(counts, turned / torch.where(counts, lengths, one), zero)
    return (vectors * factor) @ unit.transpose(-2, -1)


@decomposition(torch.linalg.svd, **ROTATIONS)
def svd_to_rotations(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Singular values, in descending order, and vectors of small matrices.

    The signs of vectors are not LAPACK's: the largest element, in magnitude, of each row of Vh is positive here, or for
    fewer rows than columns that of each column of U. Vectors that are not unique are some orthogonal ones.

    Declines: matrices of more than 8 rows or columns, or of no fixed size; complex ones.
    """
    check_real(A)
    rows, columns = small_size(A, -2), small_size(A, -1)
    left, values, right = svd(A, rows, columns)
    if not full_matrices:
        count = min(rows, columns)
        left, right = left[..., :count], right[..., :count]
    return torch.return_types.linalg_svd((left, values, right.transpose(-2, -1)))  # type: ignore[attr-defined]


@decomposition(torch.linalg.svdvals, **ROTATIONS)
def svdvals_to_rotations(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values, in descending order, of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones.
    """
    check_real(A)
    return torch.sort(singular_values(A, *small_sides(A)), -1, descending=True)[0]


@decomposition(torch.linalg.pinv, **ROTATIONS)
def pinv_to_rotations(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Pseudoinverse of matrices with few rows or few columns, also of those that are not of full rank.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex or hermitian ones; tolerances that
    are tensors.
    """
    if is_complex(A) or hermitian:
        decline("the matrix must be real and hermitian=False")
    if any(isinstance(limit, Tensor) for limit in (rcond, atol, rtol)):
        decline("the tolerances must be numbers, got a tensor")
    rows, columns = small_sides(A)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 0.0 if atol else max(rows, columns) * torch.finfo(A.dtype).eps
    return pinv(A, rows, columns, atol=atol or 0.0, rtol=rtol)


# Norms. Of a matrix, order 1 is the largest sum of a column's magnitudes, infinity that of a row's, and with a minus
# the smallest; "nuc", 2 and -2 are the sum, the largest and the smallest of the singular values.


def matrix_norm(x: Tensor, order: float | str, dim: Sequence[int], keepdim: bool, dtype: torch.dtype | None) -> Tensor:
    """torch.linalg.matrix_norm of the orders "fro", 1, -1, infinity and minus infinity."""
    if isinstance(order, str):
        return torch.linalg.vector_norm(x, 2, tuple(dim), keepdim, dtype=dtype)
    rows, columns = (axis % x.dim() for axis in dim)
    along, other = (rows, columns) if math.isfinite(order) else (columns, rows)
    sums = (x if dtype is None else x.to(dtype)).abs().sum(along, keepdim=keepdim)
    other -= not keepdim and other > along
    return sums.amax(other, keepdim=keepdim) if order > 0 else sums.amin(other, keepdim=keepdim)


@decomposition(torch.linalg.norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_norm_to_vector_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Norms of vectors and matrices; stock TorchScript fails where no axis is named, dynamo fixes sizes.

    Math:   an order and two axes, or no axes and a matrix, mean a norm of matrices; everything else is one of vectors.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.norm.html
    """
    axes = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    is_matrix = A.dim() == 2 if axes is None else len(axes) == 2
    axes = tuple(range(A.dim())) if axes is None else axes
    if ord is None or not is_matrix:
        return torch.linalg.vector_norm(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)
    if ord in SPECTRAL:
        return NotImplemented
    return matrix_norm(A, ord, axes, keepdim, dtype)


@decomposition((torch.linalg.matrix_norm, torch.linalg.norm), **ROTATIONS)
def matrix_norm_to_rotations(
    A: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Norms "nuc", 2 and -2 of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones.
    """
    if ord not in SPECTRAL or isinstance(dim, int) or (dim is not None and len(dim) != 2):
        return NotImplemented
    check_real(A)
    if dim is None and A.dim() == 1:
        return NotImplemented
    first, second = (axis % A.dim() for axis in dim or (-2, -1))
    rows, columns = small_sides(A, (first, second))
    matrix = A.movedim((first, second), (-2, -1))
    values = singular_values(matrix if dtype is None else matrix.to(dtype), rows, columns)
    norm = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    if keepdim:
        norm = norm.unsqueeze(min(first, second)).unsqueeze(max(first, second))
    return norm


@decomposition(torch.linalg.matrix_norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def matrix_norm_to_sum(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Norms of matrices other than "nuc", 2 and -2; stock dynamo fixes sizes, TorchScript loses the dtype.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
    """
    return NotImplemented if ord in SPECTRAL else matrix_norm(A, ord, dim, keepdim, dtype)
