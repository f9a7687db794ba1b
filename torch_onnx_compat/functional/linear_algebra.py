"""Solvers and factorisations of small matrices, unrolled; every step is a few operations on a whole batch.

Math:   elimination exchanges no rows. It marks the rows that have been pivots, takes the largest unused element of each
        column, as LAPACK does, and orders the rows at the end, by one product with a permutation matrix.
Source: Golub and Van Loan, Matrix Computations, sections 3.4 (partial pivoting), 4.2 (Cholesky), 5.2 (Householder);
        https://docs.pytorch.org/docs/stable/linalg.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.catalogue.entry import decline
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import constant, static_size

MAX_SIZE = 8
"""Most rows of a matrix whose steps are unrolled; a step takes about a dozen nodes."""


def small_size(matrix: Tensor, dim: int = -1) -> int:
    """The size of a matrix whose elimination is unrolled.

    Args:
        matrix: The argument of the rewrite's body itself, since static_size knows no other tensor.
        dim: The axis.

    Raises:
        Declined: The size is not fixed, or larger than MAX_SIZE.
    """
    size = _size(matrix, dim)
    if size is None:
        decline("the size of the matrix must be fixed; export with only the batch axis dynamic")
    if not 1 <= size <= MAX_SIZE:
        decline(
            f"matrices must have 1 to {MAX_SIZE} rows, got {size}; ONNX has no operator for it, so compute it "
            f"outside of the file, or before the export if it does not depend on an input"
        )
    return size


def common_batch(matrix: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcasts the batch axes of both arguments of a rewrite's body."""
    if _batch(matrix) == _batch(right):
        return matrix, right
    return matrix + torch.zeros_like(right[..., :1, :1]), right + torch.zeros_like(matrix[..., :1, :1])


def is_vector(matrix: Tensor, right: Tensor) -> bool:
    """Whether the right-hand side of a system is a batch of vectors: (..., rows) for matrices (..., rows, columns)."""
    if right.dim() == 1:
        return True
    sizes = [_size(right, axis) for axis in range(right.dim())]
    return right.dim() == matrix.dim() - 1 and [*_batch(matrix), _size(matrix, -2)] == sizes


def _size(x: Any, axis: int) -> int | None:
    return static_size(x.real if isinstance(x, Pair) else x, axis)


def _batch(x: Tensor) -> list[int | None]:
    return [_size(x, axis) for axis in range(x.dim() - 2)]


def identity(size: int, like: Tensor) -> Tensor:
    """The identity matrix as a constant."""
    return constant(np.eye(size), like)


def solve(matrix: Any, right: Any, size: int) -> Tensor:
    """The X of matrix @ X = right; infinities or NaN where the matrix is singular.

    Args:
        matrix: (..., size, size), real or a pair.
        right: (..., size, columns), real or a pair as the matrix is.
        size: A fixed number.
    """
    if isinstance(matrix, Pair):
        pair: Tensor = _solve_pairs(matrix, right, size)
        return pair
    return _eliminate(matrix, right, size)[0]


def _solve_pairs(matrix: Pair, right: Pair, size: int) -> Any:
    """The real system of twice the size: (A + iB)(X + iY) = C + iD is [[A, -B], [B, A]] [X; Y] = [C; D]."""
    upper, lower = torch.cat((matrix.real, -matrix.imag), -1), torch.cat((matrix.imag, matrix.real), -1)
    found = solve(torch.cat((upper, lower), -2), torch.cat((right.real, right.imag), -2), 2 * size)
    return Pair(found[..., :size, :], found[..., size:, :])


def inverse_with_info(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The inverse of (..., size, size), and the number of the first pivot that is 0, counted from 1, or 0."""
    inverted, found = _eliminate(matrix, torch.zeros_like(matrix) + identity(size, matrix), size)
    return inverted, _first(found == 0, size)


def _first(flags: Tensor, size: int) -> Tensor:
    """The first place, counted from 1, that is true on the last axis, or 0; int32."""
    places = torch.where(flags, constant(np.arange(size) - size, flags, torch.int64), constant(0, flags, torch.int64))
    lowest = places.amin(-1)
    return torch.where(lowest < 0, lowest + (size + 1), lowest).to(torch.int32)


def _eliminate(matrix: Tensor, right: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Solution and pivots (..., size) by Gauss-Jordan elimination with partial pivoting."""
    rows = torch.cat((matrix, right), -1)
    number = constant(np.arange(size), matrix, torch.int64)
    unused = None
    pivots, selectors = [], []
    for k in range(size):
        column = rows[..., k : k + 1]
        magnitude = column.abs().squeeze(-1)
        if unused is not None:
            magnitude = torch.where(unused, magnitude, constant(-1.0, matrix))
        chosen = number == magnitude.argmax(-1, keepdim=True)
        unused = ~chosen if unused is None else unused & ~chosen
        selector = chosen.to(matrix.dtype).unsqueeze(-2)
        pivot = selector @ rows
        pivots.append(pivot[..., k : k + 1])
        pivot = pivot / pivots[-1]
        rows = torch.where(chosen.unsqueeze(-1), pivot, rows - column * pivot)
        selectors.append(selector)
    return torch.cat(selectors, -2) @ rows[..., size:], torch.cat(pivots, -1).squeeze(-2)


def inverse(matrix: Any, size: int) -> Tensor:
    """The inverse of (..., size, size), real or a pair."""
    parts = matrix.real if isinstance(matrix, Pair) else matrix
    return solve(matrix, torch.zeros_like(matrix) + identity(size, parts), size)


def cholesky(matrix: Tensor, size: int) -> Tensor:
    """The lower factor L of L @ L.T = matrix; only the lower triangle of the matrix is read."""
    return cholesky_with_info(matrix, size)[0]


def cholesky_with_info(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The lower factor, and the size of the first leading minor that is not positive definite, or 0."""
    rest, columns = matrix, []
    squares: list[Tensor] = []
    for k in range(size):
        squares.append(rest[..., k : k + 1, k : k + 1])
        column = rest[..., k : k + 1] / torch.sqrt(squares[-1])
        columns.append(column)
        if k + 1 < size:
            rest = rest - column * column.transpose(-2, -1)
    lower = constant(np.tri(size, dtype=bool), matrix, torch.bool)
    factor = torch.where(lower, torch.cat(columns, -1), constant(0.0, matrix))
    return factor, _first(~(torch.cat(squares, -1).squeeze(-2) > 0), size)


def solve_triangular(matrix: Tensor, right: Tensor, size: int, *, upper: bool, unit: bool = False) -> Tensor:
    """The X of matrix @ X = right for a triangular matrix, by substitution; the other triangle is not read.

    Args:
        matrix: (..., size, size).
        right: (..., size, columns).
        size: A fixed number.
        upper: Whether it is the upper triangle.
        unit: Whether the diagonal is taken to be ones.
    """
    solved: list[Tensor] = []
    for i in reversed(range(size)) if upper else range(size):
        row = right[..., i : i + 1, :]
        if solved:
            known = slice(i + 1, size) if upper else slice(0, i)
            row = row - matrix[..., i : i + 1, known] @ torch.cat(solved, -2)
        if not unit:
            row = row / matrix[..., i : i + 1, i : i + 1]
        solved = [row, *solved] if upper else [*solved, row]
    return torch.cat(solved, -2)


def qr(matrix: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Complete QR factorisation by Householder reflections, with LAPACK's signs.

    A column that has nothing below its diagonal is not reflected, nor is the last one of a square matrix.

    Returns:
        Q (..., rows, rows) and R (..., rows, columns).
    """
    upper = matrix
    orthogonal = torch.zeros_like(matrix[..., :1]) + identity(rows, matrix)
    zero = constant(0.0, matrix)
    for k in range(min(rows - 1, columns)):
        below = constant((np.arange(rows) > k)[:, None], matrix, torch.bool)
        unit = constant((np.arange(rows) == k)[:, None], matrix)
        tail = torch.where(below, upper[..., k : k + 1], zero)
        first = upper[..., k : k + 1, k : k + 1]
        largest = torch.maximum(tail.abs().amax(-2, keepdim=True), first.abs())
        scale = torch.where(largest > 0, largest, torch.ones_like(largest))
        tail, first = tail / scale, first / scale
        below_square = (tail * tail).sum(-2, keepdim=True)
        length = torch.sqrt(below_square + first * first)
        reflected = first + torch.where(first < 0, -length, length)
        mirror = tail + unit * reflected
        is_idle = below_square == 0
        factor = torch.where(is_idle, zero, 2 / (below_square + torch.where(is_idle, length + 1, reflected) ** 2))
        scaled = factor * mirror
        upper = upper - scaled @ (mirror.transpose(-2, -1) @ upper)
        orthogonal = orthogonal - (orthogonal @ mirror) @ scaled.transpose(-2, -1)
    triangle = constant(np.arange(rows)[:, None] <= np.arange(columns), matrix, torch.bool)
    return orthogonal, torch.where(triangle, upper, zero)


def pivots(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Pivots (..., size) of an elimination with partial pivoting, and their rows (..., size)."""
    rows = matrix
    number = constant(np.arange(size), matrix, torch.int64)
    unused = None
    found, places = [], []
    for k in range(size):
        column = rows[..., :1]
        magnitude = column.abs().squeeze(-1)
        if unused is not None:
            magnitude = torch.where(unused, magnitude, constant(-1.0, matrix))
        place = magnitude.argmax(-1, keepdim=True)
        chosen = number == place
        unused = ~chosen if unused is None else unused & ~chosen
        pivot = chosen.to(matrix.dtype).unsqueeze(-2) @ rows
        found.append(pivot[..., 0])
        places.append(place)
        if k + 1 < size:
            divisor = torch.where(pivot[..., :1] == 0, constant(1.0, matrix), pivot[..., :1])
            rows = rows[..., 1:] - column / divisor * pivot[..., 1:]
    return torch.cat(found, -1), torch.cat(places, -1)


def determinant(matrix: Tensor, size: int) -> Tensor:
    """Determinants of (..., size, size); size is at most MAX_SIZE."""
    found, places = pivots(matrix, size)
    product: Tensor = _permutation_sign(matrix, places, size) * found.prod(-1)
    return product


def log_determinant(matrix: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Sign, and logarithm of the magnitude, of the determinants of (..., size, size); size is at most MAX_SIZE."""
    found, places = pivots(matrix, size)
    negative = torch.remainder((found < 0).to(torch.int64).sum(-1), 2).to(matrix.dtype)
    logarithm = torch.log(found.abs()).sum(-1)
    sign = _permutation_sign(matrix, places, size) * (1 - 2 * negative)
    return torch.where((found == 0).to(torch.int64).sum(-1) > 0, constant(0.0, matrix), sign), logarithm


def _permutation_sign(matrix: Tensor, places: Tensor, size: int) -> Tensor:
    above = constant(np.tri(size, k=-1, dtype=bool).T, matrix, torch.bool)
    swapped = above & (places.unsqueeze(-2) < places.unsqueeze(-1))  # an inversion of the permutation
    parity = torch.remainder(swapped.to(torch.int64).sum((-2, -1)), 2).to(matrix.dtype)
    return 1 - 2 * parity


SQUARINGS, DEGREE = 10, 14


def matrix_exp(matrix: Tensor, size: int) -> Tensor:
    """Exponential of (..., size, size), computed in float64: exp(A / 2**10) as a Taylor polynomial, squared ten times.

    With a norm of A / 2**10 below 0.5 the polynomial's remainder is below 1e-16; squaring multiplies errors by 2**10.
    """
    small = matrix.to(torch.float64) / 2**SQUARINGS
    one = identity(size, small)
    power = one + small / DEGREE
    for k in range(DEGREE - 1, 0, -1):
        power = one + small @ power / k
    for _ in range(SQUARINGS):
        power = power @ power
    result: Tensor = power.to(matrix.dtype)
    return result
