"""Norms of any order, as distances are made of.

Math:   the sum of |d|^p to the power 1 / p; the number of non-zero cells for p = 0, the largest magnitude for infinity.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html; ATen/native/Distance.cpp
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def euclidean_by_products(x1: Tensor, x2: Tensor) -> Tensor:
    """Euclidean distances as sqrt(|a|^2 - 2ab + |b|^2), in one product as eager torch computes it.

    Args:
        x1: Points (..., P, M).
        x2: Points (..., R, M).
    """
    squares = [(x * x).sum(-1, keepdim=True) for x in (x1, x2)]
    ones = [torch.ones_like(square) for square in squares]
    left = torch.cat((-2 * x1, squares[0], ones[0]), -1)
    right = torch.cat((x2, ones[1], squares[1]), -1)
    return (left @ right.transpose(-2, -1)).clamp(min=0).sqrt()


def norm(difference: Tensor, p: float, *, keepdim: bool = False) -> Tensor:
    """Norm of the last axis."""
    if p == 0:
        return (difference != 0).to(difference.dtype).sum(-1, keepdim=keepdim)
    if p == 2:
        return (difference * difference).sum(-1, keepdim=keepdim).sqrt()
    magnitude = difference.abs()
    if math.isinf(p):
        return magnitude.amax(-1, keepdim=keepdim)
    if p == 1:
        return magnitude.sum(-1, keepdim=keepdim)
    result: Tensor = magnitude.pow(p).sum(-1, keepdim=keepdim).pow(1 / p)
    return result
