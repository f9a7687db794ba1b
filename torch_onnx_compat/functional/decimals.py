"""``round(number, digits)`` as Python computes it, in float64, by ONNX's operators or torch's.

Python rounds the number's exact value: 0.35 is a little less than 7/20, so ``round(0.35, 1)`` is 0.3, though float64
has 3.5 for 10 * 0.35. Where the scaled number is half-way, the rounding error of the scaling decides.

Source: T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971).
"""

from __future__ import annotations

from typing import Any

import torch

_SPLIT = 2.0**27 + 1
"""Splits a float64 into two halves, whose products are exact."""


def round_decimal(op: Any, number: Any, digits: int) -> Any:
    """A float64 rounded to a number of decimal digits; right where ``number * 10**digits`` is below 2**52.

    Args:
        op: ONNX's operators as methods, and `constant`: `Ops`, or `TorchArithmetic`.
        number: The number, float64.
        digits: Decimal digits; negative ones round to tens, hundreds and so on. At most 22 either way.
    """
    scale = 10.0 ** abs(digits)
    factor = op.constant(scale, torch.float64)
    scaled = op.Mul(number, factor) if digits > 0 else op.Div(number, factor)
    if digits > 0:
        rest = _error_of_product(op, number, scale, scaled)
    else:
        product = op.Mul(scaled, factor)
        rest = op.Sub(op.Sub(number, product), _error_of_product(op, scaled, scale, product))
    zero, half, one = (op.constant(value, torch.float64) for value in (0.0, 0.5, 1.0))
    below = op.Floor(scaled)
    is_half = op.And(op.Equal(op.Sub(scaled, below), half), op.Not(op.Equal(rest, zero)))
    exact = op.Where(op.Greater(rest, zero), op.Add(below, one), below)
    rounded = op.Where(is_half, exact, op.Round(scaled))
    return op.Div(rounded, factor) if digits > 0 else op.Mul(rounded, factor)


def _error_of_product(op: Any, a: Any, b: float, product: Any) -> Any:
    """What ``a * b`` is more than its float64, exactly."""
    high, low = _halves(op, a)
    b_high = (_SPLIT * b) - (_SPLIT * b - b)
    parts = [(high, b_high), (high, b - b_high), (low, b_high), (low, b - b_high)]
    first, *others = (op.Mul(half, op.constant(of_b, torch.float64)) for half, of_b in parts)
    error = op.Sub(first, product)
    for other in others:
        error = op.Add(error, other)
    return error


def _halves(op: Any, a: Any) -> tuple[Any, Any]:
    large = op.Mul(a, op.constant(_SPLIT, torch.float64))
    high = op.Sub(large, op.Sub(large, a))
    return high, op.Sub(a, high)


class TorchArithmetic:
    """ONNX's operators on torch's tensors."""

    Add = staticmethod(torch.add)
    Sub = staticmethod(torch.sub)
    Mul = staticmethod(torch.mul)
    Div = staticmethod(torch.div)
    Floor = staticmethod(torch.floor)
    Round = staticmethod(torch.round)
    Where = staticmethod(torch.where)
    And = staticmethod(torch.logical_and)
    Not = staticmethod(torch.logical_not)
    Equal = staticmethod(torch.eq)
    Greater = staticmethod(torch.gt)

    @staticmethod
    def constant(value: float, dtype: torch.dtype) -> torch.Tensor:
        """A number, of shape (1,): TorchScript's exporter makes float32 of a float64 without axes."""
        made: torch.Tensor = torch.zeros(1, dtype=dtype) + value
        return made
