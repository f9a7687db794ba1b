"""Sizes that are known only in part: polynomials with integer coefficients over sizes that a run decides.

A size is a Python int, or a Polynomial if it depends on the run. Arithmetic keeps both in one canonical form, so that
two sizes are equal at every run if they compare equal. sympy knows more, and takes a hundred times as long; a graph of
3,000 nodes needs some 20,000 operations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, Union

Monomial: TypeAlias = "tuple[Unknown, ...]"
"""A product of unknowns, sorted; the empty one is 1."""

Size: TypeAlias = Union[int, "Polynomial"]


@dataclass(frozen=True, eq=False)
class Unknown:
    """A number that only a run decides.

    Attributes:
        key: What it is; unknowns of one key are equal.
        number: Its place in the order of unknowns.
        is_natural: Whether it is known to be 0 or more, as the size of an axis is.
    """

    key: Hashable
    number: int
    is_natural: bool

    def __lt__(self, other: Unknown) -> bool:
        return self.number < other.number


class Unknowns:
    """The unknowns of one graph, one for each key."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, Polynomial] = {}

    def get(self, key: Hashable, *, is_natural: bool) -> Polynomial:
        """The unknown of this key."""
        if key not in self._by_key:
            unknown = Unknown(key, len(self._by_key), is_natural)
            self._by_key[key] = Polynomial({(unknown,): 1})
        return self._by_key[key]

    def divide(self, number: Size, divisor: Size) -> Size | None:
        """The floor of a quotient; None if the divisor may be 0 or less."""
        if not at_least(divisor, 1):
            return None
        exact = divide_exactly(number, divisor)
        if exact is not None:
            return exact
        if isinstance(number, int) and isinstance(divisor, int):
            return number // divisor
        if isinstance(number, int) or not isinstance(divisor, int):
            return self.get(("floor", number, divisor), is_natural=at_least(number, 0))
        # floor((d * a + r) / d) = a + floor(r / d), so that 2n + 1 over 2 is n
        whole = {m: c // divisor for m, c in number.terms.items()}
        rest = _made({m: c % divisor for m, c in number.terms.items()})
        if isinstance(rest, int):
            return add(_made(whole), rest // divisor)
        return add(_made(whole), self.get(("floor", rest, divisor), is_natural=at_least(rest, 0)))


class Polynomial:
    """A sum of products of unknowns with integer coefficients; never a constant."""

    __slots__ = ("__dict__", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = terms

    @cached_property
    def _key(self) -> frozenset[tuple[Monomial, int]]:
        return frozenset(self.terms.items())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            if other == 0:
                return self
            other_terms: Mapping[Monomial, int] = {(): other}
        elif isinstance(other, Polynomial):
            other_terms = other.terms
        else:
            return NotImplemented
        terms = dict(self.terms)
        for monomial, coefficient in other_terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return _made(terms)

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            return _made({m: c * other for m, c in self.terms.items()})
        if not isinstance(other, Polynomial):
            return NotImplemented
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                product = tuple(sorted(left + right))
                terms[product] = terms.get(product, 0) + a * b
        return _made(terms)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        def text(unknown: Unknown) -> str:
            return f"<{unknown.key}>"

        return " + ".join("*".join([str(c), *map(text, m)]) for m, c in self.terms.items())


def _made(terms: dict[Monomial, int]) -> Size:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Polynomial(kept)


def at_least(size: Size, bound: int) -> bool:
    """Whether a size is known to be that large at every run."""
    if isinstance(size, int):
        return size >= bound
    terms = size.terms
    if terms.get((), 0) < bound:
        return False
    return all(c >= 0 and all(u.is_natural for u in m) for m, c in terms.items() if m)


def compare(left: Size, right: Size) -> int | None:
    """-1, 0 or 1 where left is known to be less than, equal to or greater than right; None where a run decides."""
    difference = left - right
    if isinstance(difference, int):
        return (difference > 0) - (difference < 0)
    if at_least(difference, 1):
        return 1
    return -1 if at_least(-difference, 1) else None


def divide_exactly(number: Size, divisor: Size) -> Size | None:
    """The number that times the divisor is the given one, also where an unknown is 0; None if there is no such one."""
    if number == 0 or number == divisor:
        return 0 if number == 0 else 1
    divisors = _terms(divisor)
    if len(divisors) != 1:
        return None
    ((monomial, factor),) = divisors.items()
    terms: dict[Monomial, int] = {}
    for product, coefficient in _terms(number).items():
        rest = list(product)
        if coefficient % factor or any(rest.count(unknown) < monomial.count(unknown) for unknown in monomial):
            return None
        for unknown in monomial:
            rest.remove(unknown)
        terms[tuple(rest)] = coefficient // factor
    return _made(terms)


def add(left: Size, right: Size) -> Size:
    """The sum."""
    total: Size = left + right
    return total


def _terms(size: Size) -> Mapping[Monomial, int]:
    return {(): size} if isinstance(size, int) else size.terms


def text_of(size: Size) -> str | None:
    """The size as a formula in the names of axes, such as ``2*batch``; None if it depends on something else."""
    if isinstance(size, int):
        return str(size)
    text = ""
    for monomial, coefficient in sorted(size.terms.items(), key=lambda term: -len(term[0])):
        factors = [_name_of(unknown) for unknown in monomial]
        named = [factor for factor in factors if factor is not None]
        if len(named) < len(factors):
            return None
        numbers = [str(abs(coefficient))] if abs(coefficient) != 1 or not named else []
        sign = (" - " if text else "-") if coefficient < 0 else (" + " if text else "")
        text += sign + "*".join([*numbers, *named])
    return text


def _name_of(unknown: Unknown) -> str | None:
    if isinstance(unknown.key, str):
        return unknown.key
    if isinstance(unknown.key, tuple) and unknown.key[0] == "floor":
        number, divisor = text_of(unknown.key[1]), text_of(unknown.key[2])
        return None if number is None or divisor is None else f"floor(({number})/({divisor}))"
    if isinstance(unknown.key, tuple) and unknown.key[0] == "axis":
        number = text_of(unknown.key[1])
        return None if number is None else f"({number})"
    return None


def evaluate(size: Size, numbers: Mapping[Hashable, int]) -> int:
    """The size at a run that gives its unknowns these numbers, by key."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms.items():
        for unknown in monomial:
            coefficient *= numbers[unknown.key]
        total += coefficient
    return total
