"""Special functions: gamma, error and Bessel functions, entropies.

Special functions in elementary ones, with a stated error.

Source: the functions' docstrings.

The complementary error function where 1 - erf(x) has no digits left, and the normal distribution.

Math:   with t = 1 / (1 + |x| / 2), log(erfcx(|x|) / t) is smooth on 0..1; the polynomial below is its Chebyshev fit
        of degree 13 in t, off by 1.2e-9, evaluated in float64: float32 results are off by rounding only.
Source: Press et al., Numerical Recipes, 6.2 (the same with a fit of degree 9).
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition
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


_LOG_ERFCX = (
    *(0.169763395243, -1.04869239164, 2.66507814075, -3.45643119429, 2.2269429508, -0.534171910247, 0.0773604547538),
    *(-0.0479369168882, -0.161762085222, -0.0826782584139, 0.0830261155415, 0.375014066605, 0.999999756941),
    -1.26551212281,
)


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), each value to its own last digit."""
    y = x.double()
    tail = torch.exp(_log_erfcx(y.abs()) - y * y)
    return torch.where(y < 0, 2 - tail, tail).to(x.dtype)


def erfcx(x: Tensor) -> Tensor:
    """erfc(x) exp(x^2)."""
    y = x.double()
    scaled = torch.exp(_log_erfcx(y.abs()))
    return torch.where(y < 0, 2 * torch.exp(y * y) - scaled, scaled).to(x.dtype)


def log_ndtr(x: Tensor) -> Tensor:
    """Logarithm of the normal distribution function."""
    y = x.double() * math.sqrt(0.5)
    log_tail = _log_erfcx(y.abs()) - y * y - math.log(2)
    return torch.where(y < 0, log_tail, torch.log(1 - torch.exp(log_tail))).to(x.dtype)


def _log_erfcx(y: Tensor) -> Tensor:
    t = 1 / (1 + y * 0.5)
    series = t * _LOG_ERFCX[0] + _LOG_ERFCX[1]
    for coefficient in _LOG_ERFCX[2:]:
        series = series * t + coefficient
    return torch.log(t) + series


@decomposition(
    (torch.digamma, torch.special.digamma, torch.special.psi),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def digamma_to_log(input: Tensor) -> Tensor:
    """Derivative of lgamma; neither exporter has an operator for it.

    Math: digamma.
    Source: https://docs.pytorch.org/docs/stable/special.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return digamma(x)


@decomposition(
    (torch.lgamma, torch.special.gammaln),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def lgamma_to_log(input: Tensor) -> Tensor:
    """Logarithm of the gamma function; neither exporter has an operator for it.

    Math: lgamma.
    Source: https://docs.pytorch.org/docs/stable/special.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return lgamma(x)


@decomposition(
    (torch.erfinv, torch.special.erfinv),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=2e-6,
)
def erfinv_to_polynomials(input: Tensor) -> Tensor:
    """Inverse of the error function; neither exporter has an operator for it.

    Math: erfinv.
    Source: https://docs.pytorch.org/docs/stable/special.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfinv(x)


@decomposition(
    (torch.i0, torch.special.i0), needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-6
)
def i0_to_polynomials(input: Tensor) -> Tensor:
    """Modified Bessel function of order 0; neither exporter has an operator for it.

    Math: i0e.
    Source: https://docs.pytorch.org/docs/stable/special.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return i0e(x) * torch.exp(x.abs())


@decomposition(torch.special.i0e, needed_on=("torchscript", "dynamo"), exactness=Exactness.APPROXIMATE, error=1e-6)
def i0e_to_polynomials(input: Tensor) -> Tensor:
    """Scaled modified Bessel function of order 0; neither exporter has an operator for it.

    Math: i0e.
    Source: https://docs.pytorch.org/docs/stable/special.html
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return i0e(x)


@decomposition((torch.erfc, torch.special.erfc), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def erfc_to_polynomial(input: Tensor) -> Tensor:
    """Complementary error function; stock TorchScript has no symbolic, stock dynamo's 1 - erf(x) is 0 from 4 on.

    Declines: float64.

    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.erfc
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfc(x)


@decomposition(torch.special.erfcx, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def erfcx_to_polynomial(input: Tensor) -> Tensor:
    """erfc(x) exp(x^2); stock TorchScript has no symbolic, stock dynamo errs on large x.

    Declines: float64.

    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.erfcx
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfcx(x)


@decomposition(torch.special.log_ndtr, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def log_ndtr_to_polynomial(input: Tensor) -> Tensor:
    """Logarithm of the normal distribution function; stock TorchScript has no symbolic, stock dynamo's is -inf.

    Declines: float64.

    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.log_ndtr
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return log_ndtr(x)


@decomposition(torch.special.ndtr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def ndtr_to_erfc(input: Tensor) -> Tensor:
    """Distribution function of the normal distribution; stock TorchScript has no symbolic for it.

    Declines: float64.

    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.ndtr
    """
    if input.dtype == torch.float64:
        decline("float64 is not written with all its digits; convert to float32")
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    return erfc(x * -math.sqrt(0.5)) * 0.5


@decomposition(torch.special.entr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def entr_to_where(input: Tensor) -> Tensor:
    """Entropy of each value; stock TorchScript has no symbolic for it.

    Math: by definition; NaN where x is.
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.entr
    """
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    inner = torch.where(x == 0, torch.zeros_like(x), -x * torch.log(x))
    return torch.where(x < 0, torch.full_like(x, -math.inf), inner)


@decomposition((torch.xlogy, torch.special.xlogy), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def xlogy_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product with a logarithm; stock TorchScript has no symbolic for it, stock dynamo loses NaN.

    Math: by definition; NaN where y is.
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.xlogy
    """
    y = other if isinstance(other, Tensor) else torch.full((), other)
    product = input * torch.log(y)
    return torch.where((torch.as_tensor(input) == 0) & ~torch.isnan(y), torch.zeros_like(product), product)


@decomposition(torch.special.xlog1py, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def xlog1py_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product with a logarithm; stock TorchScript has no symbolic, dynamo takes no numbers.

    Math: by definition; NaN where y is.
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.xlog1py
    """
    y = other if isinstance(other, Tensor) else torch.full((), other)
    product = input * torch.log1p(y)
    return torch.where((torch.as_tensor(input) == 0) & ~torch.isnan(y), torch.zeros_like(product), product)
