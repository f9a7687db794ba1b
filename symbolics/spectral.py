"""Eigenvalues, singular values and the norms that rest on them.

Norms of matrices that need no singular values.

Math:   order 1 is the largest sum of a column's magnitudes, infinity that of a row's, and with a minus the smallest.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html

Eigenvalues of small symmetric matrices and singular values, by Jacobi's rotations, all of them written out.

Math:   a rotation of columns p and q makes one element beside the diagonal 0; sweeps over all pairs converge
        quadratically. Pairs without a common column are turned at once. Singular values come from turning the columns
        of the matrix itself until they are orthogonal, which is as accurate for the small ones as for the large.
Source: Golub and Van Loan, Matrix Computations, sections 8.5 (Jacobi) and 8.6.3 (one-sided);
        https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.linear_algebra import MAX_SIZE, identity, qr, small_size
from torch_onnx_compat.tracing import constant, static_size

SPECTRAL = ("nuc", 2, -2)
"""Orders that are norms of the singular values."""


def matrix_norm(x: Tensor, order: float | str, dim: Sequence[int], keepdim: bool, dtype: torch.dtype | None) -> Tensor:
    """torch.linalg.matrix_norm of the orders "fro", 1, -1, infinity and minus infinity."""
    if order == "fro":
        norm: Tensor = torch.linalg.vector_norm(x, 2, tuple(dim), keepdim, dtype=dtype)
        return norm
    assert not isinstance(order, str)
    rows, columns = (axis % x.dim() for axis in dim)
    summed, other = (rows, columns) if math.isfinite(order) else (columns, rows)
    sums = (x if dtype is None else x.to(dtype)).abs().sum(summed, keepdim=keepdim)
    other -= not keepdim and other > summed
    return sums.amax(other, keepdim=keepdim) if order > 0 else sums.amin(other, keepdim=keepdim)


EIGEN_SWEEPS = {1: 0, 2: 1, 3: 4, 4: 5, 5: 6, 6: 6, 7: 7, 8: 7}


SINGULAR_SWEEPS = {1: 0, 2: 2, 3: 4, 4: 5, 5: 7, 6: 7, 7: 8, 8: 8}
"""By size; what random, graded, close and repeated spectra need in float32, see tests/functional/test_jacobi.py."""


def small_sides(matrix: Tensor, dim: Sequence[int] = (-2, -1)) -> tuple[int, int]:
    """Rows and columns of the argument of a rewrite's body, one of which is small.

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


def mirrored(matrix: Tensor, size: int, uplo: str) -> Tensor:
    """The symmetric matrix of which only one triangle, "L" or "U", is read."""
    lower = constant(np.tri(size, dtype=bool), matrix, torch.bool)
    transposed = matrix.transpose(-2, -1)
    return torch.where(lower, matrix, transposed) if uplo.upper() == "L" else torch.where(lower, transposed, matrix)


def eigh(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues and eigenvectors of symmetric (..., size, size).

    The largest element of each vector, in magnitude, is positive.
    """
    scale = _scale(matrix)
    rest = matrix / scale
    vectors = torch.zeros_like(matrix) + identity(size, matrix)
    for pairs in _rounds(size) * EIGEN_SWEEPS[size]:
        turn = _rotation(rest, size, pairs)
        rest = turn.transpose(-2, -1) @ rest @ turn
        vectors = vectors @ turn
    values = (rest * identity(size, matrix)).sum(-1) * scale.squeeze(-1)
    values, order = torch.sort(values, -1)
    return values, _signed(_ordered(vectors, order, size))


def svd(matrix: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Complete U, descending singular values and complete V of (..., rows, columns).

    The largest element of each column of V, in magnitude, is positive; for fewer rows than columns that of U.
    """
    if rows < columns:
        right, values, left = svd(matrix.transpose(-2, -1), columns, rows)
        return left, values, right
    turned, vectors, scale = orthogonal_columns(matrix, columns)
    values, order = torch.sort(_lengths(turned), -1, descending=True)
    vectors = _ordered(vectors, order, columns)
    largest = _largest(vectors)
    vectors = torch.where(largest < 0, -vectors, vectors)
    turned = _ordered(turned, order, columns)
    turned = torch.where(largest < 0, -turned, turned)
    left, upper = qr(turned, rows, columns)
    flipped = (upper[..., :columns, :] * identity(columns, matrix)).sum(-1) < 0
    if rows > columns:
        flipped = torch.cat((flipped, torch.zeros_like(left[..., 0, columns:], dtype=torch.bool)), -1)
    return torch.where(flipped.unsqueeze(-2), -left, left), values * scale.squeeze(-1), vectors


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
    kept = lengths > limit
    factor = torch.where(kept, 1 / torch.where(kept, lengths * scale, constant(1.0, matrix)), constant(0.0, matrix))
    unit = torch.where(kept, turned / torch.where(kept, lengths, constant(1.0, matrix)), constant(0.0, matrix))
    return (vectors * factor) @ unit.transpose(-2, -1)


def orthogonal_columns(matrix: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """W, orthogonal V and the scale (..., 1, 1) for which W * scale = matrix @ V has orthogonal columns.

    Args:
        matrix: (..., rows, columns) with no fewer rows than columns.
        columns: A fixed number.
    """
    scale = _scale(matrix)
    turned = matrix / scale
    vectors = torch.zeros_like(turned[..., :1, :]).transpose(-2, -1) + identity(columns, matrix)
    for pairs in _rounds(columns) * SINGULAR_SWEEPS[columns]:
        turn = _rotation(turned.transpose(-2, -1) @ turned, columns, pairs)
        turned, vectors = turned @ turn, vectors @ turn
    return turned, vectors, scale


def _scale(matrix: Tensor) -> Tensor:
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    return torch.where(largest > 0, largest, torch.ones_like(largest))


def _lengths(columns: Tensor) -> Tensor:
    return torch.sqrt((columns * columns).sum(-2))


def _largest(vectors: Tensor) -> Tensor:
    """The largest element of each column, with its sign."""
    high, low = vectors.amax(-2, keepdim=True), vectors.amin(-2, keepdim=True)
    return torch.where(high < -low, low, high)


def _signed(vectors: Tensor) -> Tensor:
    return torch.where(_largest(vectors) < 0, -vectors, vectors)


def _ordered(columns: Tensor, order: Tensor, size: int) -> Tensor:
    number = constant(np.arange(size)[:, None], order, torch.int64)
    return columns @ (number == order.unsqueeze(-2)).to(columns.dtype)


def _rounds(size: int) -> list[list[tuple[int, int]]]:
    """All pairs of columns, in rounds of disjoint ones, as in a tournament."""
    players: list[int] = list(range(size + size % 2))
    rounds = []
    for _ in range(len(players) - 1):
        pairs = [(players[i], players[-1 - i]) for i in range(len(players) // 2)]
        rounds.append([(min(pair), max(pair)) for pair in pairs if max(pair) < size])
        players = [players[0], players[-1], *players[1:-1]]
    return rounds


def _rotation(symmetric: Tensor, size: int, pairs: list[tuple[int, int]]) -> Tensor:
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


# float32, eigenvalues relative to the largest, 2000 matrices of each size and of nine kinds: 7e-6 at most.
@decomposition(torch.linalg.eigh, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def eigh_to_rotations(A: Tensor, UPLO: str = "L") -> Any:  # noqa: N803
    """Ascending eigenvalues and eigenvectors of small symmetric matrices.

    The signs of vectors are not LAPACK's: the largest element of each, in magnitude, is positive here. Of a repeated
    eigenvalue the vectors are some orthogonal ones. Vectors are off by the error divided by the gap to the next value.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    size = small_size(A)
    return torch.return_types.linalg_eigh(eigh(mirrored(A, size, UPLO), size))  # type: ignore[attr-defined]


# float32, eigenvalues relative to the largest, 2000 matrices of each size and of nine kinds: 7e-6 at most.
@decomposition(torch.linalg.eigvalsh, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def eigvalsh_to_rotations(A: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803
    """Ascending eigenvalues of small symmetric matrices.

    Declines: matrices of more than 8 rows or of no fixed size; complex ones.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigvalsh.html
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    size = small_size(A)
    return eigh(mirrored(A, size, UPLO), size)[0]


# float32, relative to the largest value or element, 2000 matrices of each size and of nine kinds: 4e-6 at most.
@decomposition(torch.linalg.svd, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def svd_to_rotations(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:  # noqa: N803
    """Singular values, in descending order, and vectors of small matrices.

    The signs of vectors are not LAPACK's: the largest element, in magnitude, of each row of Vh is positive here, or for
    fewer rows than columns that of each column of U. Vectors that are not unique are some orthogonal ones.

    Declines: matrices of more than 8 rows or columns, or of no fixed size; complex ones.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    rows, columns = small_size(A, -2), small_size(A, -1)
    left, values, right = svd(A, rows, columns)
    if not full_matrices:
        count = min(rows, columns)
        left, right = left[..., :count], right[..., :count]
    return torch.return_types.linalg_svd((left, values, right.transpose(-2, -1)))  # type: ignore[attr-defined]


# float32, relative to the largest value, 2000 matrices of each size and of nine kinds: 2e-6 at most.
@decomposition(torch.linalg.svdvals, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def svdvals_to_rotations(A: Tensor, *, driver: str | None = None) -> Tensor:  # noqa: N803
    """Singular values, in descending order, of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svdvals.html
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
    return torch.sort(singular_values(A, *small_sides(A)), -1, descending=True)[0]


# float32, relative to the largest element and divided by the condition number: 3e-6 at most.
@decomposition(torch.linalg.pinv, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-5)
def pinv_to_rotations(
    A: Tensor,  # noqa: N803
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Pseudoinverse of matrices with few rows or few columns, also of those that are not of full rank.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex or hermitian ones; tolerances that
    are tensors; out=.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.pinv.html
    """
    if not isinstance(A, Tensor) or A.dtype.is_complex or hermitian:
        decline("the matrix must be real and hermitian=False")
    if out is not None or any(isinstance(limit, Tensor) for limit in (rcond, atol, rtol)):
        decline("out must be None and the tolerances numbers, got a tensor")
    rows, columns = small_sides(A)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 0.0 if atol else max(rows, columns) * torch.finfo(A.dtype).eps
    return pinv(A, rows, columns, atol=atol or 0.0, rtol=rtol)


@decomposition(torch.linalg.norm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_norm_to_vector_norm(
    A: Tensor,  # noqa: N803
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Norms of vectors and matrices; stock TorchScript fails where no axis is named, dynamo fixes sizes.

    Math: an order and two axes, or no axes and a matrix, mean a norm of matrices; everything else is one of vectors.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.norm.html
    """
    axes = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    is_matrix = A.dim() == 2 if axes is None else len(axes) == 2
    axes = tuple(range(A.dim())) if axes is None else axes
    if ord is None or not is_matrix:
        norm: Tensor = torch.linalg.vector_norm(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)
        return norm
    if ord in SPECTRAL:
        return NotImplemented
    return matrix_norm(A, ord, axes, keepdim, dtype)


# float32, relative to the largest singular value, as svdvals_to_rotations.
@decomposition(
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
) -> Tensor:
    """Norms "nuc", 2 and -2 of matrices with few rows or few columns.

    Declines: matrices of more than 8 rows and columns, or of no fixed size; complex ones.

    Math: the largest, the smallest, or the sum of the singular values; torch_onnx_compat.functional.jacobi.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
    """
    if ord not in SPECTRAL or isinstance(dim, int) or (dim is not None and len(dim) != 2):
        return NotImplemented
    if not isinstance(A, Tensor) or A.dtype.is_complex:
        decline("the matrix must be real; ONNX has no complex tensors")
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
    A: Tensor,  # noqa: N803
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Norms of matrices other than "nuc", 2 and -2; stock dynamo fixes sizes, TorchScript loses the dtype.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
    """
    if ord in SPECTRAL:
        return NotImplemented
    return matrix_norm(A, ord, dim, keepdim, dtype)
