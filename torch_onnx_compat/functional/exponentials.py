"""Exponentials and logarithms that keep all their digits near 0, and what activations are made of them."""

from __future__ import annotations

import torch
from torch import Tensor


def expm1(x: Tensor) -> Tensor:
    """The exponential less 1 of floating-point numbers.

    Math: exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), which loses nothing near 0; beyond 1/2 nothing is lost
          anyway.
    """
    half = torch.tanh(x * 0.5)
    return torch.where(torch.abs(x) < 0.5, 2 * half / (1 - half), torch.exp(x) - 1)


def log1p(x: Tensor) -> Tensor:
    """The logarithm of 1 + x of floating-point numbers.

    Math: with u = 1 + x as it is rounded, log(1 + x) = log(u) + log(1 + e / u), where e = x - (u - 1) is what rounding
          lost, exactly. e / u is at most a rounding, so that it is its own log(1 + e / u). Beyond 1/2 it does not
          matter.
    """
    u = 1 + x
    lost = (x - (u - 1)) / u
    return torch.log(u) + torch.where(torch.abs(x) < 0.5, lost, torch.zeros_like(x))


def elu(x: Tensor, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """The exponential linear unit: scale x above 0, scale alpha (exp(input_scale x) - 1) below."""
    below = expm1(x if input_scale == 1 else x * input_scale) * (alpha * scale)
    return torch.where(x > 0, x if scale == 1 else x * scale, below)


def softplus(x: Tensor) -> Tensor:
    """The logarithm of 1 + exp(x), which does not overflow."""
    return x.clamp(min=0) + log1p(torch.exp(-x.abs()))
