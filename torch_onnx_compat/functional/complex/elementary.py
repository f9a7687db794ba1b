"""Exponentials, logarithms, roots, powers, trigonometric and hyperbolic functions of complex tensors.

Math:   with z = a + ib, |z| and arg z its length and angle:
        exp z = e^a (cos b + i sin b), log z = log |z| + i arg z, z^p = |z|^p (cos(p arg z) + i sin(p arg z)),
        sinh z = sinh a cos b + i cosh a sin b, cosh z = cosh a cos b + i sinh a sin b,
        tanh z = (tanh a + i sin b cos b / cosh^2 a) / (cos^2 b + tanh^2 a sin^2 b), in which nothing overflows,
        sin z = -i sinh(iz), cos z = cosh(iz), tan z = -i tanh(iz).
Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 3.7, 4.3.55 to 4.3.57 and 4.5.49 to 4.5.51.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional import exponentials
from torch_onnx_compat.functional.complex.functions import absolute, angle
from torch_onnx_compat.functional.complex.pair import Pair, on_pairs
from torch_onnx_compat.functional.complex.products import multiply


def polar(abs: Tensor, angle: Tensor) -> Pair:
    """torch.polar."""
    return Pair(abs * torch.cos(angle), abs * torch.sin(angle))


@on_pairs("exp")
def _exp(input: Pair) -> Pair:
    return polar(torch.exp(input.real), input.imag)


@on_pairs("expm1")
def _expm1(input: Pair) -> Pair:
    # e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2) keeps its digits near 0.
    sine = torch.sin(input.imag / 2)
    real = exponentials.expm1(input.real) * torch.cos(input.imag) - 2 * sine * sine
    return Pair(real, torch.exp(input.real) * torch.sin(input.imag))


@on_pairs("log1p")
def _log1p(input: Pair) -> Pair:
    # log |1 + z| = log1p(2a + a^2 + b^2) / 2 keeps its digits near 0, and overflows where 1 does not matter.
    a, b = input.real, input.imag
    moved = Pair(a + 1, b)
    is_small = absolute(input) < 0.5
    near = torch.where(is_small, a * (2 + a) + b * b, torch.zeros_like(a))
    return Pair(torch.where(is_small, exponentials.log1p(near) / 2, torch.log(absolute(moved))), angle(moved))


@on_pairs("log")
def _log(input: Pair) -> Pair:
    return Pair(torch.log(absolute(input)), angle(input))


@on_pairs("log2")
def _log2(input: Pair) -> Pair:
    return _scaled(_log(input), 1 / math.log(2))


@on_pairs("log10")
def _log10(input: Pair) -> Pair:
    return _scaled(_log(input), 1 / math.log(10))


def _scaled(input: Pair, factor: float) -> Pair:
    return Pair(input.real * factor, input.imag * factor)


@on_pairs("sqrt")
def _sqrt(input: Pair) -> Pair:
    # The larger part first: it is the root of a sum, the other one comes from dividing by it.
    larger = torch.sqrt(absolute(input) / 2 + input.real.abs() / 2)
    safe = torch.where(larger == 0, torch.ones_like(larger), larger)
    other = input.imag.abs() / (2 * safe)
    is_right = input.real >= 0
    imag = torch.where(is_right, other, larger)
    return Pair(torch.where(is_right, larger, other), torch.where(input.imag < 0, -imag, imag))


@on_pairs("rsqrt")
def _rsqrt(input: Pair) -> Any:
    return _sqrt(input).reciprocal()


@on_pairs("pow", "__pow__")
def _pow(input: Any, exponent: Any) -> Any:
    if not isinstance(input, Pair) or isinstance(exponent, (Pair, complex)):
        return NotImplemented
    if type(exponent) is int and 1 <= exponent <= 64:
        return _repeated(input, exponent)
    return polar(torch.pow(absolute(input), exponent), angle(input) * exponent)


def _repeated(input: Pair, exponent: int) -> Any:
    """A power by squaring, which keeps more digits than the length's and the angle's."""
    if exponent == 1:
        return input
    half = _repeated(input, exponent // 2)
    square = multiply(half, half)
    return multiply(square, input) if exponent % 2 else square


@on_pairs("sinh")
def _sinh(input: Pair) -> Pair:
    a, b = input.real, input.imag
    return Pair(torch.sinh(a) * torch.cos(b), torch.cosh(a) * torch.sin(b))


@on_pairs("cosh")
def _cosh(input: Pair) -> Pair:
    a, b = input.real, input.imag
    return Pair(torch.cosh(a) * torch.cos(b), torch.sinh(a) * torch.sin(b))


@on_pairs("tanh")
def _tanh(input: Pair) -> Pair:
    height, sine, cosine = torch.tanh(input.real), torch.sin(input.imag), torch.cos(input.imag)
    divisor = cosine * cosine + (height * sine) * (height * sine)
    slope = 1 / torch.cosh(input.real)  # 0 where cosh overflows; 1 - tanh^2 would lose its digits long before
    return Pair(height / divisor, sine * cosine * slope * slope / divisor)


@on_pairs("sin")
def _sin(input: Pair) -> Pair:
    turned = _sinh(_times_i(input))
    return Pair(turned.imag, -turned.real)


@on_pairs("cos")
def _cos(input: Pair) -> Any:
    return _cosh(_times_i(input))


@on_pairs("tan")
def _tan(input: Pair) -> Pair:
    turned = _tanh(_times_i(input))
    return Pair(turned.imag, -turned.real)


def _times_i(input: Pair) -> Pair:
    return Pair(-input.imag, input.real)


@on_pairs("sigmoid")
def _sigmoid(input: Pair) -> Pair:
    # 1 / (1 + exp(-z)) is (1 + tanh(z / 2)) / 2, which does not overflow.
    half = _tanh(_scaled(input, 0.5))
    return Pair((1 + half.real) / 2, half.imag / 2)
