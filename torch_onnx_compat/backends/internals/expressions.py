"""Expressions of sizes, which sympy holds: read, bounded, and computed at sizes as Python computes them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def data_symbols(expression: Any) -> list[Any]:
    """The symbols in an expression that stand for sizes that values decide."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return sorted(free_unbacked_symbols(expression), key=str)


def has_more_extremes(expression: Any, most: int) -> bool:
    """Whether an expression holds more than some number of Min and Max; it is read no further than that."""
    open_parts, count = [expression], 0
    while open_parts and count <= most:
        part = open_parts.pop()
        count += type(part).__name__ in ("Min", "Max")
        open_parts += part.args
    return count > most


def compile_expression(
    expression: Any, symbols: Sequence[Any], rounded: Callable[[float], Any] | None = None
) -> Callable[..., bool | int | float | None]:
    """A function of whole numbers that computes an expression; it returns None where there is no value.

    Args:
        expression: A sympy expression with torch's own functions.
        symbols: Its symbols, in the order of the function's arguments.
        rounded: Rounds each fraction, to numpy's float32 for example; None leaves them in float64.
    """
    import sympy

    names = {symbol: f"s{index}" for index, symbol in enumerate(symbols)}
    scope = {"__builtins__": {}, **_FUNCTIONS, "rounded": rounded}
    try:
        source = _as_python(expression, names, rounds=rounded is not None)
    except KeyError:  # a function that is not in the table

        def function(*sizes: int) -> Any:
            return expression.xreplace({s: sympy.Integer(size) for s, size in zip(symbols, sizes, strict=True)})

    else:
        function = eval(f"lambda {', '.join(names.values())}: {source}", scope)

    def value(*sizes: int) -> bool | int | float | None:
        try:
            return _plain(function(*sizes))
        except Exception:  # a division by 0, which torch's own functions assert, or no whole number
            return None

    return value


def _plain(found: Any) -> bool | int | float | None:
    """A number of Python's, of what Python, numpy or sympy computed."""
    import sympy

    if isinstance(found, np.generic):
        found = found.item()
    if isinstance(found, (bool, int, float)):
        return found
    if found in (sympy.true, sympy.false):
        return bool(found)
    return float(found) if found.is_number and found.is_real else None


def _power(base: Any, exponent: Any) -> Any:
    """A power as Python computes it.

    Raises:
        OverflowError: It is a whole number of more digits than anybody compares: Python would work on it for hours.
    """
    if isinstance(base, int) and isinstance(exponent, int) and exponent * base.bit_length() > MOST_BITS:
        raise OverflowError("a power of too many digits")
    return base**exponent


MOST_BITS = 2**16
"""Bits of a power of whole numbers up to which it is computed."""

_FUNCTIONS: dict[str, Any] = {
    "power": _power,
    "min": min,
    "max": max,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": int,
    "round": round,
}

_FORMS = {
    "Add": " + ",
    "Mul": " * ",
    "And": " and ",
    "Or": " or ",
    "Equality": " == ",
    "Unequality": " != ",
    "StrictLessThan": " < ",
    "LessThan": " <= ",
    "StrictGreaterThan": " > ",
    "GreaterThan": " >= ",
    "FloorDiv": " // ",
    "CleanDiv": " // ",
    "PythonMod": " % ",
    "Mod": " % ",
    "IntTrueDiv": " / ",
    "FloatTrueDiv": " / ",
}
"""Python's operator for each of sympy's and torch's functions, by class."""

_CALLS = {
    "Pow": "power",
    "PowByNatural": "power",
    "FloatPow": "power",
    "Max": "max",
    "Min": "min",
    "Abs": "abs",
    "floor": "floor",
    "ceiling": "ceil",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "TruncToInt": "trunc",
    "RoundToInt": "round",
    "ToFloat": "",
    "Identity": "",
    "Not": "not ",
}


def _as_python(expression: Any, names: Mapping[Any, str], *, rounds: bool = False) -> str:
    """The source of an expression; with `rounds`, of one that calls `rounded` on every fraction."""
    if expression in names:
        return names[expression]
    kind = type(expression).__name__
    if kind in ("BooleanTrue", "BooleanFalse"):
        return str(bool(expression))
    if expression.is_Integer:
        return f"({int(expression)})"
    if expression.is_Rational:
        return f"({expression.p} / {expression.q})"
    if expression.is_Float:
        return f"rounded({float(expression)!r})" if rounds else repr(float(expression))
    parts = [_as_python(part, names, rounds=rounds) for part in expression.args]
    if rounds and kind in FLOATS:
        parts[:1] = [f"rounded({parts[0]})"]
    if kind in _CALLS:
        return f"({_CALLS[kind]}({', '.join(parts)}))"
    return f"({_FORMS[kind].join(parts)})"


FLOATS = frozenset({"IntTrueDiv", "FloatTrueDiv", "ToFloat", "FloatPow"})
"""What makes fractions of whole numbers, or computes with them."""


def parts_of(expression: Any) -> Iterator[Any]:
    """An expression and its parts, each once: a size that is made of another holds that one many times."""
    met, open_parts = set[Any](), [expression]
    while open_parts:
        part = open_parts.pop()
        if part not in met:
            met.add(part)
            yield part
            open_parts += reversed(part.args)


def computes_floats(expression: Any) -> bool:
    """Whether a part of an expression is computed in floating point."""
    return any(getattr(part, "is_Float", False) or type(part).__name__ in FLOATS for part in parts_of(expression))


_WHOLE_OF_FRACTION = frozenset({"floor", "ceiling", "FloorToInt", "CeilToInt", "TruncToInt", "RoundToInt"})
"""What makes a whole number of a fraction."""


def whole_parts(expression: Any) -> Iterator[Any]:
    """The parts of an expression that are whole numbers made of fractions."""
    for part in parts_of(expression):
        if type(part).__name__ in _WHOLE_OF_FRACTION and computes_floats(part):
            yield part


def fast_growing_parts(expression: Any) -> Iterator[Any]:
    """The parts of an expression with a power of more than the fourth degree, or a size in an exponent.

    Such whole numbers leave the range of int64 at sizes that users have; Python's have no range.
    """
    if any(map(_is_steep, parts_of(expression))):
        for part in parts_of(expression):
            if type(part).__name__ in _GROWING and any(map(_is_steep, parts_of(part))):
                yield part


_POWERS = ("Pow", "PowByNatural")
_GROWING = (*_POWERS, "Mul", "Add")


def _is_steep(part: Any) -> bool:
    if type(part).__name__ not in _POWERS:
        return False
    exponent = part.args[1]
    return bool(exponent.free_symbols) or bool(exponent.is_Integer and exponent > MOST_DEGREES)


MOST_DEGREES = 4
"""Degree of a power of a size that int64 holds for every size that fits into memory."""


def larger_than_one(sizes: Sequence[Any], count: int) -> Any:
    """The condition that so many of these sizes are larger than 1."""
    import sympy

    return sympy.Eq(sum(sympy.Min(1, size - 1) for size in sizes), count)


def has_one_solution(equation: Any) -> bool:
    """Whether an equation, or its opposite, in one symbol is a linear one."""
    (symbol,) = equation.free_symbols
    difference = equation.lhs - equation.rhs
    return bool(difference.is_polynomial(symbol)) and bool(difference.diff(symbol).is_number)


def constants_of(expression: Any) -> set[int]:
    """The whole numbers that stand in an expression."""
    return {abs(int(atom)) for atom in expression.atoms() if getattr(atom, "is_Integer", False)}


def has_one_value(expression: Any, ranges: Mapping[Any, tuple[int, int | None]]) -> bool:
    """Whether an expression has the same value for all sizes within these ranges, as far as torch can tell."""
    found = _range_of(expression, ranges)
    return found is not None and bool(found.is_singleton())


def has_few_values(expression: Any, ranges: Mapping[Any, tuple[int, int | None]]) -> bool:
    """Whether a whole number stays within some range for all sizes within these ranges, as far as torch can tell."""
    found = _range_of(expression, ranges)
    return found is not None and bool(found.lower.is_Integer and found.upper.is_Integer)


def _range_of(expression: Any, ranges: Mapping[Any, tuple[int, int | None]]) -> Any:
    from torch.utils._sympy.numbers import int_oo
    from torch.utils._sympy.value_ranges import ValueRanges

    limits: Any = {
        symbol: ValueRanges(least, int_oo if most is None else most) for symbol, (least, most) in ranges.items()
    }
    try:
        return bounds_of(expression, tuple(limits.items()))
    except Exception:  # a function that it does not know
        return None


@functools.lru_cache(maxsize=1024)
def bounds_of(expression: Any, ranges: tuple[tuple[Any, Any], ...]) -> Any:
    """The range that torch computes for an expression, given the ranges of its symbols; kept, since it takes long."""
    from torch.utils._sympy.value_ranges import bound_sympy

    return bound_sympy(expression, dict(ranges))
