"""Comparisons of numbers as Python makes them: exact, where torch rounds the constant to the tensor's element type.

``x.max().item() == 0.1`` is never true of a float32, which is a little more or less than 0.1; torch, which compares
with the nearest float32, says otherwise. So the constant is replaced by its neighbour in the element type on the side
that the comparison asks for, which gives the same answer for every value of that type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.functional.element_types import NUMPY_TYPES

_ORDERS: dict[str, Callable[..., Tensor]] = {"<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge}
_EQUALITIES: dict[str, Callable[..., Tensor]] = {"==": torch.eq, "!=": torch.ne}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

LIMIT = 2**63
"""What int64 does not hold any more."""


def promoted(number: Tensor) -> Tensor:
    """A tensor that stands for a Python number, in an element type in which small numbers do not overflow."""
    if number.is_floating_point():
        return number.to(torch.float32) if number.element_size() < 4 else number
    return number if number.dtype == torch.bool else number.to(torch.int64)


def compare_exactly(number: Tensor, symbol: str, constant: float, *, turned: bool = False) -> Tensor | bool:
    """``number < constant`` and the like, as Python compares the number that a tensor stands for.

    Args:
        number: Of one element.
        symbol: One of ``<``, ``<=``, ``>``, ``>=``, ``==`` and ``!=``.
        constant: An int, of any size, or a float.
        turned: Whether the constant is on the left.

    Returns:
        A boolean tensor of the same shape; a bool where every value has the same answer.
    """
    below, above = neighbours(constant, number.dtype)
    number = promoted(number.to(torch.int64) if number.dtype == torch.bool else number)
    if symbol in ("==", "!="):
        if below != above or not _is_held(below, number):
            return symbol == "!="
        return _EQUALITIES[symbol](number, below)
    symbol = _TURNED[symbol] if turned else symbol
    bound = below if symbol in ("<=", ">") else above
    if not _is_held(bound, number):
        return bool(bound > 0 if symbol in ("<", "<=") else bound < 0)
    return _ORDERS[symbol](number, bound)


def _is_held(bound: float, number: Tensor) -> bool:
    return number.is_floating_point() or -LIMIT <= bound < LIMIT


def neighbours(constant: float, dtype: torch.dtype) -> tuple[Any, Any]:
    """The largest number of an element type that is not above a constant, and the smallest that is not below it."""
    if not dtype.is_floating_point:
        is_whole = isinstance(constant, int) or not math.isfinite(constant)
        return (constant, constant) if is_whole else (math.floor(constant), math.ceil(constant))
    kind = NUMPY_TYPES[dtype]
    try:
        double = float(constant)
    except OverflowError:
        double = math.inf if constant > 0 else -math.inf
    with np.errstate(over="ignore", under="ignore"):
        nearest = kind(double)
        if float(nearest) > constant:
            return float(np.nextafter(nearest, kind(-math.inf))), float(nearest)
        if float(nearest) < constant:
            return float(nearest), float(np.nextafter(nearest, kind(math.inf)))
    return float(nearest), float(nearest)
