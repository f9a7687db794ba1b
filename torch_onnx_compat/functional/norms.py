"""Norms of matrices that need no singular values.

Math:   order 1 is the largest sum of a column's magnitudes, infinity that of a row's, and with a minus the smallest.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

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
