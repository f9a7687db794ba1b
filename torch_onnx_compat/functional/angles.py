"""Angles of points.

Math:   atan(y / x), plus pi with the sign of y for x < 0; the sign of a zero is that of its reciprocal. A quotient
        of equal zeros or infinities is that of their signs, 0 and 1 for either.
Source: https://docs.pytorch.org/docs/stable/generated/torch.atan2.html
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """torch.atan2 of floating-point tensors of one dtype."""
    turn = torch.where((y < 0) | (1 / y < 0), -math.pi, math.pi)
    is_left = (x < 0) | (1 / x < 0)
    both_infinite = torch.isinf(x) & torch.isinf(y)
    quotient = torch.where(both_infinite, torch.sign(x) * torch.sign(y), y / x)
    angle = torch.atan(torch.where((x == 0) & (y == 0), y * torch.where(is_left, -1.0, 1.0), quotient))
    return torch.where(is_left, angle + turn.to(y.dtype), angle)
