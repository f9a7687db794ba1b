"""One form for the sizes that models compute in many ways: padded to a multiple, cut to one, divided again and again.

``h + (-h) % 4`` is ``4 * ((h + 3) // 4)``. In the first form each layer that pads holds its input three times; in the
second the sizes of a deep network stay short, and torch sees which questions about them have one answer.
Everything here holds for all whole numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from torch_onnx_compat.backends.internals.expressions import computes_floats, parts_of

Terms = dict[Any, int]
"""A sum: the factor of each term and its whole coefficient; the constant is that of 1."""


@functools.lru_cache(maxsize=4096)
def canonical(expression: Any) -> Any:
    """The same whole number, in the shorter form.

    Args:
        expression: A sympy expression with torch's own functions.
    """
    if not expression.args or _misleads_sympy(expression):
        return expression
    try:
        parts = tuple(canonical(part) for part in expression.args)
        if any(new is not old for new, old in zip(parts, expression.args, strict=True)):
            expression = expression.func(*parts)
        rule = _RULES.get(type(expression).__name__)
        found = expression if rule is None else rule(expression)
    except ZeroDivisionError:  # at no sizes has it a value
        return expression
    return found if found is expression else canonical(found)


def is_zero(number: Any) -> Any:
    """The condition that a number of sizes is 0, in the shorter form."""
    import sympy

    return canonical(sympy.Eq(number, 0))


def _misleads_sympy(expression: Any) -> bool:
    """Whether this is a remainder of extremes: sympy 1.14 takes ``min(24, 14 * h) / 14`` for whole, both being even."""
    from torch.utils._sympy.functions import Max, Min

    return type(expression).__name__ in ("Mod", "PythonMod") and bool(expression.has(Max, Min))


def _terms_of(expression: Any) -> Terms | None:
    """A sum of whole numbers; None if a coefficient is none."""
    import sympy

    terms: Terms = {}
    for term in sympy.Add.make_args(expression):
        coefficient, factor = term.as_coeff_Mul()
        if not coefficient.is_Integer or not factor.is_integer:
            return None
        terms[factor] = terms.get(factor, 0) + int(coefficient)
    return terms


def _sum_of(terms: Mapping[Any, int]) -> Any:
    import sympy

    return sympy.Add(*(coefficient * factor for factor, coefficient in terms.items()))


def _divisor(expression: Any) -> int | None:
    """The divisor of a quotient or a remainder, if it is a positive number."""
    divisor = expression.args[1]
    return int(divisor) if divisor.is_Integer and divisor > 0 else None


def _remainder(expression: Any) -> Any:
    """``(4 - h % 4) % 4`` is ``-h % 4``: multiples of the divisor fall away, and remainders within."""
    import sympy

    divisor, terms = _divisor(expression), _terms_of(expression.args[0])
    if divisor is None:
        return sympy.S.Zero if _reduced(*expression.args)[1] == 1 else expression
    if terms is None:
        return expression
    left: Terms = {}
    for factor, coefficient in terms.items():
        if factor == 1 or coefficient % divisor == 0:
            coefficient %= divisor
        inner = _terms_of(factor.args[0]) if _is_remainder(factor, divisor) else {factor: 1}
        for one, count in ({factor: 1} if inner is None else inner).items():
            left[one] = left.get(one, 0) + coefficient * count
    return expression if left == terms else _remainder_of(_sum_of(left), divisor)


def _is_remainder(expression: Any, multiple_of: int) -> bool:
    """Whether this is the remainder of a division by a number, and that a multiple of another one."""
    if type(expression).__name__ not in ("Mod", "PythonMod"):
        return False
    divisor = _divisor(expression)
    return divisor is not None and divisor % multiple_of == 0


def _remainder_of(base: Any, divisor: int) -> Any:
    from torch.utils._sympy.functions import Mod, PythonMod

    return (Mod if base.is_nonnegative else PythonMod)(base, divisor)


def _sum(expression: Any) -> Any:
    """``h - h % 4`` is ``4 * (h // 4)``, and ``h + -h % 4`` is ``4 * ((h + 3) // 4)``."""
    terms = _terms_of(expression) or {}
    for remainder, count in terms.items():
        base = _terms_of(remainder.args[0]) if _is_remainder(remainder, 1) else None
        if base is not None and remainder.args[1] == 2 and not _holds(terms, base, -count):
            base = {factor: -coefficient for factor, coefficient in base.items()}  # h and -h are odd together
        if base is not None and _holds(terms, base, -count):
            left = {factor: coefficient for factor, coefficient in terms.items() if factor != remainder}
            for factor, coefficient in base.items():
                left[factor] = left.get(factor, 0) + count * coefficient
            divisor = int(remainder.args[1])
            return _sum_of(left) - count * divisor * _quotient_of(base, divisor)
    return expression


def _holds(terms: Terms, part: Terms, count: int) -> bool:
    """Whether a sum holds another one so many times, but for the constant: nothing but that changes its sign."""
    factors = [factor for factor in part if factor != 1]
    wanted = {factor: count * part[factor] for factor in factors}
    return bool(factors) and all(
        terms.get(factor, 0) * size > 0 and abs(terms[factor]) >= abs(size) for factor, size in wanted.items()
    )


def _quotient_of(base: Terms, divisor: int) -> Any:
    """A quotient, rounded down; of what is negative, the negative of the one that is rounded up."""
    from torch.utils._sympy.functions import FloorDiv

    if any(coefficient > 0 for factor, coefficient in base.items() if factor != 1):
        return FloorDiv(_sum_of(base), divisor)
    return -FloorDiv(divisor - 1 - _sum_of(base), divisor)


def _quotient(expression: Any) -> Any:
    """``(h // 4 + 6) // 7`` is ``(h + 24) // 28``, and ``(4 * h * w + 4 * h) // (4 * h)`` is ``w + 1``."""
    from torch.utils._sympy.functions import FloorDiv

    if _divisor(expression) is None or _is_fraction(expression.args[0]):
        shorter = FloorDiv(*_reduced(*expression.args))
        if shorter.count_ops() < expression.count_ops():
            return shorter
    divisor, terms = _divisor(expression), _terms_of(expression.args[0]) or {}
    factors = [factor for factor in terms if factor != 1]
    if divisor is None or len(factors) != 1 or type(factors[0]).__name__ != "FloorDiv" or terms[factors[0]] != 1:
        return expression
    inner = _divisor(factors[0])
    added = sum(terms.values()) - 1
    return expression if inner is None else FloorDiv(factors[0].args[0] + inner * added, inner * divisor)


def _is_fraction(expression: Any) -> bool:
    return any(type(part).__name__ == "Pow" and part.args[1].is_negative for part in parts_of(expression))


def _reduced(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    """A fraction without common factors; torch's own rules leave fractions in its numerator."""
    import sympy

    if max(numerator.count_ops(), denominator.count_ops()) > MOST_OPERATIONS:
        return numerator, denominator
    found: tuple[Any, Any] = sympy.cancel(numerator / denominator).as_numer_denom()
    return found


MOST_OPERATIONS = 200
"""Operations in a fraction that is reduced: for longer ones it would take seconds."""


def _relation(expression: Any) -> Any:
    """``h * w < 4 * h * w`` holds for all sizes, which intervals do not tell."""
    import sympy

    left, right = expression.args
    if left.is_Boolean or right.is_Boolean:
        return expression
    if not (left.is_integer and right.is_integer):
        exact = _exact(left - right)
        return expression if exact is None else expression.func(exact[0], 0)
    if max(left.count_ops(), right.count_ops()) > MOST_OPERATIONS:
        return expression
    difference = sympy.expand(left - right)
    low, high = lower_bound(difference), lower_bound(sympy.expand(-difference))
    least, most = (-math.inf if low is None else low), (math.inf if high is None else -high)
    return {True: sympy.true, False: sympy.false, None: expression}[_ANSWERS[type(expression).__name__](least, most)]


_ANSWERS: dict[str, Callable[[float, float], bool | None]] = {
    "Equality": lambda least, most: False if least > 0 or most < 0 else True if least == most else None,
    "Unequality": lambda least, most: True if least > 0 or most < 0 else False if least == most else None,
    "StrictGreaterThan": lambda least, most: True if least > 0 else False if most <= 0 else None,
    "GreaterThan": lambda least, most: True if least >= 0 else False if most < 0 else None,
    "StrictLessThan": lambda least, most: True if most < 0 else False if least >= 0 else None,
    "LessThan": lambda least, most: True if most <= 0 else False if least > 0 else None,
}
"""What a relation of two whole numbers is, given the range of their difference; None if that leaves both open."""


def _extreme(expression: Any) -> Any:
    """``max(1, h)`` is ``h`` where that is 1 at least, and ``min(h, 4 * ((h + 3) // 4))`` is ``h``."""
    if expression.count_ops() > MOST_OPERATIONS:
        return expression
    is_max, kept = type(expression).__name__ == "Max", list(expression.args)
    for part in expression.args:
        others = [other for other in kept if other is not part]
        if any(_is_at_least(other - part if is_max else part - other) for other in others):
            kept = others
    return expression if len(kept) == len(expression.args) else expression.func(*kept)


def _is_at_least(difference: Any) -> bool:
    """Whether a whole number is never negative; ``4 * (h // 4)`` lies between ``h - 3`` and ``h``."""
    import sympy

    terms = _terms_of(sympy.expand(difference))
    if terms is None:
        return False
    least = sympy.S.Zero
    for factor, count in terms.items():
        divisor = _divisor(factor) if type(factor).__name__ == "FloorDiv" else None
        if divisor is None or count % divisor:
            least += count * factor
        else:
            base = factor.args[0] - (divisor - 1 if count > 0 else 0)
            least += count // divisor * base
    bounds = [lower_bound(sympy.expand(one)) for one in (difference, least)]
    return any(bound is not None and bound >= 0 for bound in bounds)


MOST_BITS = 24
"""Bits of a whole number up to which float32 holds it."""

LARGE = 4096
"""A size up to which what is computed in floating point has to be exact, to be taken for a fraction."""


def _exact(expression: Any) -> tuple[Any, int] | None:
    """What is computed in floating point without any rounding, as a whole number and a power of 2 that divides it.

    ``0.5 * h`` is ``h / 2`` in float32 and in float64, in any order of operations; ``0.7 * h`` is no fraction of h.
    """
    import sympy

    found = _over_power_of_two(expression)
    if found is None or not computes_floats(expression):
        return None
    terms = _terms_of(sympy.expand(found[0])) or {}
    at = dict.fromkeys(expression.free_symbols, sympy.Integer(LARGE))
    largest = sum(abs(count) * abs(factor.xreplace(at)) for factor, count in terms.items())
    is_exact = terms and largest.is_number and largest < 2**MOST_BITS and found[1] < 2**MOST_BITS
    return found if is_exact else None


def _over_power_of_two(expression: Any) -> tuple[Any, int] | None:
    """An expression as a whole number and a power of 2 that divides it; None if it is no such fraction."""
    import sympy

    kind = type(expression).__name__
    if kind == "ToFloat":
        return _over_power_of_two(expression.args[0])
    if expression.is_Float:
        numerator, denominator = float(expression).as_integer_ratio()
        return sympy.Integer(numerator), denominator
    if expression.is_integer and not computes_floats(expression):
        return expression, 1
    parts = [_over_power_of_two(part) for part in expression.args] if kind in _OF_FRACTIONS else []
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    common = math.lcm(*(divisor for _, divisor in known))
    if kind == "Add":
        return sympy.Add(*(number * (common // divisor) for number, divisor in known)), common
    if kind == "Mul":
        return sympy.Mul(*(number for number, _ in known)), math.prod(divisor for _, divisor in known)
    (number, divisor), (by, of) = known
    if not (by.is_Integer and by > 0 and int(by).bit_count() == 1):
        return None
    return number * of, divisor * int(by)


_OF_FRACTIONS = ("Add", "Mul", "IntTrueDiv", "FloatTrueDiv")


def _whole_of_fraction(expression: Any) -> Any:
    """``int(0.5 * h)`` is ``h // 2``, and ``ceil(h / 4)`` is ``(h + 3) // 4``."""
    from torch.utils._sympy.functions import FloorDiv

    exact = _exact(expression.args[0])
    if exact is None:
        return expression
    (number, divisor), kind = exact, type(expression).__name__
    least = lower_bound(number)
    if kind == "TruncToInt" and (least is None or least < 0):
        return expression  # it may round up
    return FloorDiv(number + (divisor - 1 if kind == "CeilToInt" else 0), divisor)


_RULES = {
    **dict.fromkeys(("TruncToInt", "FloorToInt", "CeilToInt"), _whole_of_fraction),
    "Mod": _remainder,
    "PythonMod": _remainder,
    "Add": _sum,
    "FloorDiv": _quotient,
    "Max": _extreme,
    "Min": _extreme,
    **dict.fromkeys(_ANSWERS, _relation),
}


@functools.lru_cache(maxsize=4096)
def lower_bound(expression: Any) -> int | None:
    """A number that a whole number is never below, its symbols being what their assumptions say; None if unknown."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return 1 if expression.is_positive else 0 if expression.is_nonnegative else None
    bound = _LOWER_BOUNDS.get(type(expression).__name__)
    return None if bound is None else bound(expression)


def _of_remainder(expression: Any) -> int | None:
    return None if _divisor(expression) is None else 0


def _of_largest(expression: Any) -> int | None:
    return max((bound for bound in map(lower_bound, expression.args) if bound is not None), default=None)


def _of_quotient(expression: Any) -> int | None:
    divisor, least = _divisor(expression), lower_bound(expression.args[0])
    return None if divisor is None or least is None else least // divisor


def _of_sum(expression: Any) -> int | None:
    bounds = [bound for bound in map(lower_bound, expression.args) if bound is not None]
    return sum(bounds) if len(bounds) == len(expression.args) else None


def _of_product(expression: Any) -> int | None:
    bounds = [bound for bound in map(lower_bound, expression.args) if bound is not None and bound >= 0]
    return math.prod(bounds) if len(bounds) == len(expression.args) else None


def _of_power(expression: Any) -> int | None:
    base, exponent = map(lower_bound, expression.args)
    return base**exponent if base is not None and exponent is not None and min(base, exponent) >= 0 else None


_LOWER_BOUNDS: dict[str, Callable[[Any], int | None]] = {
    "Mod": _of_remainder,
    "PythonMod": _of_remainder,
    "Max": _of_largest,
    "FloorDiv": _of_quotient,
    "Add": _of_sum,
    "Mul": _of_product,
    "Pow": _of_power,
}
