"""Expressions of sizes at many sizes at once, by numpy, as Python computes them one by one.

Every number is a float64, which holds whole numbers below 2**53 as Python's do. Where a number on the way is larger, or
where an operator does not run, the value is not known here, and `expressions.compile_expression` computes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_onnx_compat.backends.internals.expressions import FLOATS

Array = npt.NDArray[Any]

EXACT = 2.0**52
"""Whole numbers up to here are computed exactly in float64, and so are their sums and differences."""

EXACT_32 = 2.0**24
"""The same in float32."""


@dataclass(frozen=True)
class Values:
    """What an expression is at many sizes.

    Attributes:
        numbers: Its values: booleans, float64, or float32 where it was rounded to that.
        valid: Where it has a value; Python raises an error elsewhere, for a division by 0.
        known: Where both of these are known.
    """

    numbers: Array
    valid: Array
    known: Array


def values_at(
    expression: Any, symbols: Sequence[Any], sizes: Sequence[Array], rounded: Callable[[Any], Any] | None = None
) -> Values:
    """Computes an expression at many sizes.

    Args:
        expression: A sympy expression with torch's own functions.
        symbols: Its symbols.
        sizes: For each symbol the sizes, one array of whole numbers each, all of one length.
        rounded: Rounds each fraction, as for `expressions.compile_expression`; takes arrays.

    Raises:
        KeyError: A function in it is not in the tables.
    """
    columns = {symbol: np.asarray(column, np.float64) for symbol, column in zip(symbols, sizes, strict=True)}
    with np.errstate(all="ignore"):
        return _Computation(columns, rounded, len(sizes[0])).of(expression)


class _Computation:
    def __init__(self, columns: Mapping[Any, Array], rounded: Callable[[Any], Any] | None, count: int) -> None:
        self._columns, self._rounded, self._count = columns, rounded, count
        self._known: dict[Any, Values] = {}

    def of(self, expression: Any) -> Values:
        """The values of a part, which is computed once: a size that is made of another holds that one many times."""
        if expression not in self._known:
            self._known[expression] = self._of(expression)
        return self._known[expression]

    def _of(self, expression: Any) -> Values:
        if expression in self._columns:
            return self._checked(self._columns[expression], self._everywhere(), self._everywhere())
        if not expression.args:
            return self._constant(expression)
        kind = type(expression).__name__
        parts = [self.of(part) for part in expression.args]
        if kind in FLOATS and self._rounded is not None:
            parts[0] = Values(np.asarray(self._rounded(parts[0].numbers)), parts[0].valid, parts[0].known)
        if kind in _LOGIC:
            return self._joined(_LOGIC[kind], parts)
        if kind in _OF_ONE:
            return self._of_one(_OF_ONE[kind], parts[0])
        return functools.reduce(functools.partial(self._of_two, _OF_TWO[kind]), parts)

    def _constant(self, expression: Any) -> Values:
        if type(expression).__name__ in ("BooleanTrue", "BooleanFalse"):
            return self._plain(np.full(self._count, bool(expression)))
        if expression.is_Rational:  # whole numbers among them
            value = np.full(self._count, expression.p / expression.q, np.float64)
            return self._checked(value, self._everywhere(), self._everywhere())
        if not expression.is_Float:
            raise KeyError(expression)
        value = np.full(self._count, float(expression))
        return self._plain(value if self._rounded is None else self._rounded(value))

    def _everywhere(self) -> Array:
        return np.ones(self._count, bool)

    def _plain(self, numbers: Array) -> Values:
        return Values(numbers, self._everywhere(), self._everywhere())

    def _checked(self, numbers: Array, valid: Array, known: Array) -> Values:
        """The same values; those that float64 does not hold as Python does are not known."""
        if numbers.dtype == np.float64:
            known = known & (np.abs(numbers) <= EXACT)  # not where there is NaN
        return Values(numbers, valid, known)

    def _of_one(self, function: Callable[[Array], Array], part: Values) -> Values:
        numbers, valid = part.numbers, part.valid
        if function in _WHOLE:  # Python's numbers that are whole have no limits
            valid = valid & (np.isfinite(numbers) | ~part.known)
            numbers = numbers.astype(np.float64)
        return self._checked(function(numbers), valid, part.known | ~valid)

    def _of_two(self, function: Callable[[Array, Array], Array], one: Values, other: Values) -> Values:
        left, right = one.numbers, other.numbers
        valid, known = one.valid & other.valid, one.known & other.known
        if np.float32 in (left.dtype, right.dtype):  # numpy's own numbers decide the type, Python's do not
            if function in _CHOICES:
                known = known & (np.abs(left) <= EXACT_32) & (np.abs(right) <= EXACT_32)
            left, right = left.astype(np.float32), right.astype(np.float32)
        elif function in _QUOTIENTS:
            valid = valid & ((right != 0) | ~known)
        found = function(left, right)
        if function is np.power:  # numpy and Python round roots otherwise
            known = known & np.logical_and.reduce([numbers == np.rint(numbers) for numbers in (left, right, found)])
        return self._checked(found, valid, known | ~valid)

    def _joined(self, decides: bool, parts: Sequence[Values]) -> Values:
        """And, Or: the first part that decides is the last one that Python computes."""
        open_ones, valid, known = self._everywhere(), self._everywhere(), self._everywhere()
        found = np.full(self._count, not decides)
        for part in parts:
            truth = part.numbers.astype(bool)
            valid = valid & (part.valid | ~open_ones)
            known = known & (part.known | ~open_ones)
            found = np.where(open_ones & (truth == decides), decides, found)
            open_ones = open_ones & (truth != decides)
        return Values(found, valid, known)


def _itself(numbers: Array) -> Array:
    return numbers


_LOGIC = {"And": False, "Or": True}
"""The part that decides."""

_OF_ONE: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "floor": np.floor,
    "ceiling": np.ceil,
    "FloorToInt": np.floor,
    "CeilToInt": np.ceil,
    "TruncToInt": np.trunc,
    "RoundToInt": np.rint,
    "ToFloat": _itself,
    "Identity": _itself,
    "Not": np.logical_not,
}

_WHOLE = (np.floor, np.ceil, np.trunc, np.rint)

_OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Equality": np.equal,
    "Unequality": np.not_equal,
    "StrictLessThan": np.less,
    "LessThan": np.less_equal,
    "StrictGreaterThan": np.greater,
    "GreaterThan": np.greater_equal,
    "FloorDiv": np.floor_divide,
    "CleanDiv": np.floor_divide,
    "PythonMod": np.remainder,
    "Mod": np.remainder,
    "IntTrueDiv": np.divide,
    "FloatTrueDiv": np.divide,
    "Pow": np.power,
    "PowByNatural": np.power,
    "FloatPow": np.power,
    "Max": np.maximum,
    "Min": np.minimum,
}

_QUOTIENTS = (np.floor_divide, np.remainder, np.divide)
_CHOICES = (np.maximum, np.minimum)
