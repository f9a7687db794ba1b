"""Angles of points.

Math:   atan(y / x), plus pi with the sign of y for x < 0; the sign of a zero is that of its reciprocal. A quotient
        of equal zeros or infinities is that of their signs, 0 and 1 for either.
Source: https://docs.pytorch.org/docs/stable/generated/torch.atan2.html
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def angle(x: Tensor) -> Tensor:
    """torch.angle of real numbers in floating point: 0, pi below 0, NaN of NaN."""
    return torch.where(torch.isnan(x), x, (x < 0).to(x.dtype) * math.pi)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """torch.atan2 of floating-point tensors of one dtype."""
    turn = (1 - 2 * ((y < 0) | (1 / y < 0)).to(y.dtype)) * math.pi
    is_left = (x < 0) | (1 / x < 0)
    sign = 1 - 2 * is_left.to(y.dtype)
    both_infinite = torch.isinf(x) & torch.isinf(y)
    quotient = torch.where(both_infinite, torch.sign(x) * torch.sign(y), y / x)
    angle = torch.atan(torch.where((x == 0) & (y == 0), y * sign, quotient))
    return torch.where(is_left, angle + turn, angle)
