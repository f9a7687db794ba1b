"""Norms of any order, as distances are made of.

Math:   the sum of |d|^p to the power 1 / p; the number of non-zero cells for p = 0, the largest magnitude for infinity.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
"""

from __future__ import annotations

import math

from torch import Tensor


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
