"""Discrete Fourier transforms of axes whose size varies: products with tables that the file computes itself.

Math:   X[k] = sum over j of x[j] exp(-2 pi i j k / n). Trimming to n gives elements no weight; padding adds nothing to
        the sum. j k is taken modulo n in integers, since sines of large angles lose digits. The work grows as n^2.
Source: https://docs.pytorch.org/docs/stable/fft.html
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.complex import Pair

Size = Any
"""A number, a symbolic size, or what a size is in a TorchScript trace: a tensor."""


def transform(x: Any, dim: int, n: Size | None, norm: str | None, *, inverse: bool, half: bool = False) -> Pair:
    """Transforms one axis of a real tensor or a pair to n points, or to as many as it has.

    Args:
        x: Tensor or Pair.
        dim: The axis.
        n: Points.
        norm: As in torch.fft.
        inverse: Whether the sign of the exponent is positive.
        half: Whether only the first n // 2 + 1 results are wanted.
    """
    parts = [part.transpose(dim, -1) for part in ((x.real, x.imag) if isinstance(x, Pair) else (x,))]
    length = parts[0].shape[-1] if n is None else n
    weights = None if n is None else _positions(parts[0]) < _as_tensor(length, parts[0])
    cosines, sines = _table(parts[0], weights, length // 2 + 1 if half else length, length, norm, inverse)
    real, imag = parts[0] @ cosines, parts[0] @ sines
    if len(parts) == 2:
        real, imag = real - parts[1] @ sines, imag + parts[1] @ cosines
    return Pair(real.transpose(dim, -1), imag.transpose(dim, -1))


def real_from_half(x: Pair, dim: int, n: Size | None, norm: str | None, *, inverse: bool) -> Tensor:
    """Transforms the first half of a spectrum to n real points; by default twice as many as it has, less 2.

    Math: the inner frequencies count twice, for themselves and for their conjugates in the other half.
    """
    real, imag = x.real.transpose(dim, -1), x.imag.transpose(dim, -1)
    length = 2 * (real.shape[-1] - 1) if n is None else n
    frequency, points = _positions(real), _as_tensor(length, real)
    is_inner = (frequency > 0) & (2 * frequency != points)
    weights = (2 * frequency <= points).to(torch.int64) * (1 + is_inner.to(torch.int64))
    cosines, sines = _table(real, weights, length, length, norm, inverse)
    return (real @ cosines - imag @ sines).transpose(dim, -1)


def _positions(x: Tensor) -> Tensor:
    """The numbers of the elements of the last axis."""
    return torch.arange(x.shape[-1], device=x.device)


def _as_tensor(size: Size, x: Tensor) -> Tensor:
    return torch.full((), size, dtype=torch.int64, device=x.device)


def _table(
    x: Tensor, weights: Tensor | None, outputs: Size, n: Size, norm: str | None, inverse: bool
) -> tuple[Tensor, Tensor]:
    """Cosines and sines of a transform of x's last axis to `outputs` of n points, scaled.

    Weights of elements stand for a slice, which torch.export would take as a bound of the axis.
    """
    points = _as_tensor(n, x)
    turns = torch.remainder(_positions(x).unsqueeze(1) * torch.arange(outputs, device=x.device), points)
    angles = turns.to(x.dtype) * (2 * math.pi / points.to(x.dtype))
    # Exact zeros: the sine of a rounded pi is none, and would give real numbers an angle of -pi.
    cosines = torch.cos(angles) * (torch.remainder(4 * turns, 2 * points) != points).to(x.dtype)
    sines = torch.sin(angles) * (torch.remainder(2 * turns, points) != 0).to(x.dtype)
    exponent = {"ortho": -0.5, "forward": 0 if inverse else -1}.get(norm or "backward", -1 if inverse else 0)
    scale = points.to(x.dtype) ** exponent if exponent else 1
    if weights is not None:
        scale = scale * weights.to(x.dtype).unsqueeze(1)
    return cosines * scale, sines * (scale if inverse else -scale)
