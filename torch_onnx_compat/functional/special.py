"""Special functions in elementary ones, with a stated error.

Source: the functions' docstrings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant

_ERFINV_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
_ERFINV_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047),
    *(1.00167406, 2.83297682),
)
_I0_SMALL = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
_I0_LARGE = (
    *(0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592),
    0.39894228,
)
_LANCZOS_G = 7
_LANCZOS = (
    *(676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905),
    *(-0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7),
)
_SHIFT = 8


def erfinv(x: Tensor) -> Tensor:
    """Inverse of the error function; Giles, Approximating the erfinv function, GPU Computing Gems 2, 2010."""
    w = -torch.log((1 - x) * (1 + x))
    centre = _polynomial(w - 2.5, _ERFINV_CENTRE)
    tail = _polynomial(torch.sqrt(w.clamp(min=5)) - 3, _ERFINV_TAIL)
    inner = torch.where(w < 5, centre, tail) * x
    return torch.where(x.abs() == 1, x * math.inf, inner)


def i0e(x: Tensor) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 0; Abramowitz and Stegun 9.8.1 and 9.8.2."""
    size = x.abs()
    small = _polynomial((size.clamp(max=3.75) / 3.75) ** 2, _I0_SMALL) * torch.exp(-size)
    large = size.clamp(min=3.75)
    return torch.where(size < 3.75, small, _polynomial(3.75 / large, _I0_LARGE) / torch.sqrt(large))


def lgamma(x: Tensor) -> Tensor:
    """Logarithm of the absolute gamma function, in float64; Lanczos, SIAM J. Numer. Anal. 1 (1964), g = 7, n = 9."""
    y = x.double()
    reflected = y < 0.5
    z = torch.where(reflected, 1 - y, y) - 1
    steps = constant(np.arange(1, len(_LANCZOS) + 1), y)
    series = (constant(_LANCZOS, y) / (z.unsqueeze(-1) + steps)).sum(-1) + 0.99999999999980993
    base = z + _LANCZOS_G + 0.5
    result = (z + 0.5) * torch.log(base) - base + torch.log(series) + 0.5 * math.log(2 * math.pi)
    whole = torch.floor(y)
    mirrored = math.log(math.pi) - torch.log(torch.sin(math.pi * (y - whole)).abs()) - result
    result = torch.where(reflected, mirrored, result)
    is_pole = ((y <= 0) & (y == whole)) | torch.isinf(y)
    return torch.where(is_pole, constant(math.inf, y), result).to(x.dtype)


def digamma(x: Tensor) -> Tensor:
    """Logarithmic derivative of the gamma function, in float64; Abramowitz and Stegun 6.3.5, 6.3.7 and 6.3.18."""
    y = x.double()
    mirrored = y < 0
    z = torch.where(mirrored, 1 - y, y)
    shifted = z + _SHIFT
    square = 1 / (shifted * shifted)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240))))
    below = (1 / (z.unsqueeze(-1) + constant(np.arange(_SHIFT), y))).sum(-1)
    result = torch.log(shifted) - 0.5 / shifted - series - below
    angle = math.pi * (y - torch.floor(y))
    result = torch.where(mirrored, result - math.pi * torch.sin(angle + math.pi / 2) / torch.sin(angle), result)
    is_pole = (y < 0) & (y == torch.floor(y))
    result = torch.where(is_pole, constant(math.nan, y), result)
    return torch.where(y == 0, -1 / y, result).to(x.dtype)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule, the coefficient of the highest power first."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result
