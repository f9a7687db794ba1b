"""Special functions: gamma and error functions with their relatives, Bessel functions, entropies.

Source: https://docs.pytorch.org/docs/stable/special.html
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional.exponentials import log1p
from torch_onnx_compat.tracing import as_tensor, constant

WITHIN_1E6 = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-6)
WITHIN_2E6 = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=2e-6)
ROUNDED = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
ROUNDED_IN_TORCHSCRIPT = Declaration(needed_on=("torchscript",), exactness=Exactness.ROUNDING)


def _as_float(input: Tensor) -> Tensor:
    return input if input.is_floating_point() else input.to(torch.get_default_dtype())


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule, the coefficient of the highest power first."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


# The gamma function


DIGAMMA_STEPS = 8
"""Steps up from x to where the asymptotic series of digamma holds."""

LANCZOS_G = 7
LANCZOS = (
    *(676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905),
    *(-0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7),
)
"""Coefficients of 1 / (z + 1), ..., 1 / (z + 8) in Lanczos' series for g = 7, n = 9."""


@decomposition((torch.digamma, torch.special.digamma, torch.special.psi), **WITHIN_2E6)
def digamma_to_log(input: Tensor) -> Tensor:
    """Derivative of lgamma; neither exporter has an operator for it.

    Math:   psi(z) = psi(z + 8) - 1 / z - ... - 1 / (z + 7), with the asymptotic series for psi(z + 8); for x < 0,
            psi(x) = psi(1 - x) - pi / tan(pi x). Computed in float64.
    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.5, 6.3.7 and 6.3.18
    """
    x = _as_float(input)
    y = x.double()
    is_reflected = y < 0
    z = torch.where(is_reflected, 1 - y, y)
    shifted = z + DIGAMMA_STEPS
    square = 1 / (shifted * shifted)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240))))
    below = (1 / (z.unsqueeze(-1) + constant(np.arange(DIGAMMA_STEPS), y))).sum(-1)
    result = torch.log(shifted) - 0.5 / shifted - series - below
    angle = math.pi * (y - torch.floor(y))
    result = torch.where(is_reflected, result - math.pi * torch.sin(angle + math.pi / 2) / torch.sin(angle), result)
    is_pole = (y < 0) & (y == torch.floor(y))
    result = torch.where(is_pole, constant(math.nan, y), result)
    return torch.where(y == 0, -1 / y, result).to(x.dtype)


@decomposition((torch.lgamma, torch.special.gammaln), **WITHIN_2E6)
def lgamma_to_log(input: Tensor) -> Tensor:
    """Logarithm of the absolute gamma function; neither exporter has an operator for it.

    Math:   Lanczos' series; for x < 0.5, |gamma(x) gamma(1 - x)| = pi / |sin(pi x)|. Computed in float64.
    Source: Lanczos, A Precision Approximation of the Gamma Function, SIAM J. Numer. Anal. 1 (1964)
    """
    x = _as_float(input)
    y = x.double()
    is_reflected = y < 0.5
    z = torch.where(is_reflected, 1 - y, y) - 1
    steps = constant(np.arange(1, len(LANCZOS) + 1), y)
    series = (constant(LANCZOS, y) / (z.unsqueeze(-1) + steps)).sum(-1) + 0.99999999999980993
    base = z + LANCZOS_G + 0.5
    result = (z + 0.5) * torch.log(base) - base + torch.log(series) + 0.5 * math.log(2 * math.pi)
    whole = torch.floor(y)
    reflection = math.log(math.pi) - torch.log(torch.sin(math.pi * (y - whole)).abs()) - result
    result = torch.where(is_reflected, reflection, result)
    is_pole = ((y <= 0) & (y == whole)) | torch.isinf(y)
    return torch.where(is_pole, constant(math.inf, y), result).to(x.dtype)


# The inverse error function


ERFINV_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
ERFINV_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047),
    *(1.00167406, 2.83297682),
)


@decomposition((torch.erfinv, torch.special.erfinv), **WITHIN_2E6)
def erfinv_to_polynomials(input: Tensor) -> Tensor:
    """Inverse of the error function; neither exporter has an operator for it.

    Math:   x times a polynomial in w - 2.5 where w = -log(1 - x^2) < 5, and in sqrt(w) - 3 elsewhere.
    Source: Giles, Approximating the erfinv function, GPU Computing Gems 2 (2010)
    """
    x = _as_float(input)
    w = -torch.log((1 - x) * (1 + x))
    centre = _polynomial(w - 2.5, ERFINV_CENTRE)
    tail = _polynomial(torch.sqrt(w.clamp(min=5)) - 3, ERFINV_TAIL)
    inner = torch.where(w < 5, centre, tail) * x
    return torch.where(x.abs() == 1, x * math.inf, inner)


# Bessel functions


I0_SMALL = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
I0_LARGE = (
    *(0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592),
    0.39894228,
)


def i0e(x: Tensor) -> Tensor:
    """exp(-|x|) I0(x): a polynomial in (x / 3.75)^2 up to |x| = 3.75, beyond it one in 3.75 / |x|."""
    size = x.abs()
    small = _polynomial((size.clamp(max=3.75) / 3.75) ** 2, I0_SMALL) * torch.exp(-size)
    large = size.clamp(min=3.75)
    return torch.where(size < 3.75, small, _polynomial(3.75 / large, I0_LARGE) / torch.sqrt(large))


@decomposition((torch.i0, torch.special.i0), **WITHIN_1E6)
def i0_to_polynomials(input: Tensor) -> Tensor:
    """Modified Bessel function of order 0; neither exporter has an operator for it.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8.1 and 9.8.2
    """
    x = _as_float(input)
    return i0e(x) * torch.exp(x.abs())


@decomposition(torch.special.i0e, **WITHIN_1E6)
def i0e_to_polynomials(input: Tensor) -> Tensor:
    """Modified Bessel function of order 0 times exp(-|x|); neither exporter has an operator for it.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8.1 and 9.8.2
    """
    return i0e(_as_float(input))


# The complementary error function, where 1 - erf(x) has no digits left, and the normal distribution.
#
# With t = 1 / (1 + |x| / 2), log(erfcx(|x|) / t) is smooth on 0..1. The polynomial is its Chebyshev fit of degree 13 in
# t, off by 1.2e-9 and evaluated in float64: float32 results are off by rounding only. Press et al., Numerical Recipes,
# 6.2, has the same with a fit of degree 9.


LOG_ERFCX = (
    *(0.169763395243, -1.04869239164, 2.66507814075, -3.45643119429, 2.2269429508, -0.534171910247, 0.0773604547538),
    *(-0.0479369168882, -0.161762085222, -0.0826782584139, 0.0830261155415, 0.375014066605, 0.999999756941),
    -1.26551212281,
)


def _log_erfcx(y: Tensor) -> Tensor:
    t = 1 / (1 + y * 0.5)
    series = _polynomial(t, LOG_ERFCX)
    return torch.log(t) + series


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), each value to its own last digit."""
    y = x.double()
    tail = torch.exp(_log_erfcx(y.abs()) - y * y)
    return torch.where(y < 0, 2 - tail, tail).to(x.dtype)


def _as_single(input: Tensor) -> Tensor:
    """The input as a tensor that the fit is accurate enough for.

    Raises:
        Declined: It is float64.
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    return _as_float(input)


@decomposition((torch.erfc, torch.special.erfc), **ROUNDED)
def erfc_to_polynomial(input: Tensor) -> Tensor:
    """Complementary error function; stock TorchScript has no symbolic, stock dynamo's 1 - erf(x) is 0 from 4 on.

    Declines: float64.
    """
    return erfc(_as_single(input))


@decomposition(torch.special.erfcx, **ROUNDED)
def erfcx_to_polynomial(input: Tensor) -> Tensor:
    """Complementary error function times exp(x^2); stock TorchScript has no symbolic, stock dynamo errs on large x.

    Declines: float64.
    """
    x = _as_single(input)
    y = x.double()
    scaled = torch.exp(_log_erfcx(y.abs()))
    return torch.where(y < 0, 2 * torch.exp(y * y) - scaled, scaled).to(x.dtype)


@decomposition(torch.special.log_ndtr, **ROUNDED)
def log_ndtr_to_polynomial(input: Tensor) -> Tensor:
    """Logarithm of the normal distribution function; stock TorchScript has no symbolic, stock dynamo's is -inf.

    Declines: float64.
    """
    x = _as_single(input)
    y = x.double() * math.sqrt(0.5)
    log_tail = _log_erfcx(y.abs()) - y * y - math.log(2)
    return torch.where(y < 0, log_tail, log1p(-torch.exp(log_tail))).to(x.dtype)


@decomposition(torch.special.ndtr, **ROUNDED_IN_TORCHSCRIPT)
def ndtr_to_erfc(input: Tensor) -> Tensor:
    """Distribution function of the normal distribution; stock TorchScript has no symbolic for it.

    Declines: float64.
    """
    return erfc(_as_single(input) * -math.sqrt(0.5)) * 0.5


# Products with a logarithm


@decomposition(torch.special.entr, **ROUNDED_IN_TORCHSCRIPT)
def entr_to_where(input: Tensor) -> Tensor:
    """Entropy of each value, -x log(x), -inf below 0; stock TorchScript has no symbolic for it."""
    x = _as_float(input)
    inner = torch.where(x == 0, torch.zeros_like(x), -x * torch.log(x))
    return torch.where(x < 0, torch.full_like(x, -math.inf), inner)


def _times_log(x: Tensor | float, other: Tensor | float, log: Callable[[Tensor], Tensor]) -> Tensor:
    """The product x log(y), which is 0 where x is and y is not NaN."""
    y = other if isinstance(other, Tensor) else torch.full((), other)
    product = x * log(y)
    return torch.where((as_tensor(x) == 0) & ~torch.isnan(y), torch.zeros_like(product), product)


@decomposition((torch.xlogy, torch.special.xlogy), **ROUNDED)
def xlogy_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product x log(y); stock TorchScript has no symbolic for it, stock dynamo loses NaN."""
    return _times_log(input, other, torch.log)


@decomposition(torch.special.xlog1py, **ROUNDED)
def xlog1py_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product x log(1 + y); stock TorchScript has no symbolic, dynamo takes no numbers."""
    return _times_log(input, other, log1p)
