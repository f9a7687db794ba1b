"""Quotients of sizes: torch simplifies them by searches that may take minutes, and sympy takes some for whole."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_TERMS = 32
"""Terms, multiplied out, of the longest polynomials whose common factors sympy is asked for."""


class _QuickSympy:
    """sympy, whose `simplify` only divides term by term, and whose `gcd` is 1 for long polynomials.

    torch simplifies what a common factor of a quotient's two sides leaves. It needs no more than the division, and the
    general search for a shorter form takes seconds where sizes are quotients of quotients. To find the factor, sympy
    multiplies both sides out, which takes minutes where a size is a product of several sizes of padded windows.
    """

    def __getattr__(self, name: str) -> Any:
        import sympy

        return getattr(sympy, name)

    @staticmethod
    def simplify(expression: Any) -> Any:
        """The same number, with a product's sum multiplied out."""
        import sympy

        return sympy.expand_mul(expression, deep=False)

    @staticmethod
    def gcd(one: Any, other: Any) -> Any:
        """A common factor: the greatest, or 1, which leaves a quotient as it is."""
        import sympy

        return sympy.gcd(one, other) if max(map(_count_terms, (one, other))) <= _MOST_TERMS else sympy.S.One


def _count_terms(expression: Any) -> float:
    """Terms of an expression once it is multiplied out; infinite where that are a great many."""
    import sympy

    if isinstance(expression, sympy.Add):
        return sum(map(_count_terms, expression.args))
    if isinstance(expression, sympy.Mul):
        return math.prod(map(_count_terms, expression.args))
    if isinstance(expression, sympy.Pow) and isinstance(expression.exp, sympy.Integer):
        terms, power = _count_terms(expression.base), abs(int(expression.exp))
        return 1 if terms == 1 else terms**power if power <= _MOST_TERMS else math.inf
    return 1


@contextmanager
def quick_quotients() -> Iterator[None]:
    """While active, torch makes quotients of sizes without a search for their shortest forms."""
    functions: Any = importlib.import_module("torch.utils._sympy.functions")
    if vars(functions).get("sympy") is None:  # a version of torch that imports it otherwise
        yield
        return
    before = functions.sympy
    functions.sympy = _QuickSympy()
    try:
        yield
    finally:
        functions.sympy = before


@contextmanager
def exact_divisibility() -> Iterator[None]:
    """While active, sympy does not take ``min(24, 14 * h) / 14`` for whole: 1.14 asks only if the twos divide.

    A remainder of such a quotient would be 0, and nobody would be asked. What sympy keeps of earlier calls is dropped:
    symbols have the same names in each capture.
    """
    import sympy
    from sympy.core.cache import clear_cache

    handlers: Any = sympy.Mul._prop_handler
    own = handlers["integer"]

    def is_integer(product: Any) -> bool | None:
        found: bool | None = own(product)
        divisor = product.as_coeff_Mul()[0].as_numer_denom()[1]
        return None if found and divisor & (divisor - 1) else found

    handlers["integer"] = is_integer
    clear_cache()
    try:
        yield
    finally:
        handlers["integer"] = own
