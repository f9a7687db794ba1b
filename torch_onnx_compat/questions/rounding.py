"""Sizes that come out otherwise in float32 or int64, which files have where Python has float64 and no limit."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_onnx_compat.backends.internals import expressions, many_sizes
from torch_onnx_compat.inputs.inputs import Bounds
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import FAR, Sides, Sizes

Array = npt.NDArray[Any]
Rounding = Callable[[Any], Any]
"""Of a number, or of many."""
Whole = Callable[[Any], Any]
"""What makes a whole number of a number."""

STEP = 3e-7
"""Relative change of each fraction that a file's other order of operations may make, in roundings of float32: five."""

LIMIT = 2**63
"""Whole numbers from here on are no int64."""

ROUNDINGS: tuple[Rounding, ...] = (np.float32, partial(operator.mul, 1 + STEP), partial(operator.mul, 1 - STEP))
"""Of each fraction: to float32, and by other orders of operations."""

FAR_APART = (1, 2.5, 6, 15, 40)
"""How far from the example the sizes are that are tried, in lengths of the axis: rounding errs at few sizes."""


def sides_of(question: Question, example: Sizes, bounds: Bounds) -> Sides:
    """The two sides of a question, or of a rounding.

    Args:
        question: The question.
        example: Sizes at which it was asked, by axis name.
        bounds: Smallest and largest size of each axis.
    """
    return (Sides if question.is_asked else RoundingSides)(question, example, bounds)


class RoundingSides(Sides):
    """The sizes at which rounding may decide on the value of an expression, and those at which it cannot.

    Args:
        question: Of the kind "rounding" or "overflow".
        example: Sizes at which it was computed, by axis name.
        bounds: Smallest and largest size of each axis.
    """

    def __init__(self, question: Question, example: Sizes, bounds: Bounds) -> None:
        super().__init__(question, example, bounds)
        self._rounded = {
            one: expressions.compile_expression(question.expression, self._symbols, one) for one in ROUNDINGS
        }
        self._found: dict[tuple[str, Rounding | None], many_sizes.Values | None] = {}
        parts = expressions.fast_growing_parts(question.expression)
        self._growing = [expressions.compile_expression(part, self._symbols) for part in parts]
        self._makes_whole = _OF_FRACTIONS if isinstance(self.answer(example), float) else _OF_WHOLE

    @cached_property
    def is_proven(self) -> bool:
        """Whether rounding decides at no size that is looked at."""
        return not any((*self._by_float32, *self._by_step))

    def is_other(self, sizes: Mapping[str, int]) -> bool:
        """Whether the expression has another value in float32."""
        return any(self._differs(ROUNDINGS[:1], make, sizes) for make in self._makes_whole)

    def others(self) -> Iterator[Sizes]:
        """Sizes at which float32 has another value, the nearest first."""
        yield from sorted(itertools.chain(*self._by_float32), key=self._distance)

    def named(self) -> Iterator[Sizes]:
        """Sizes at which some rounding has another value, at several distances."""
        for candidates in (*self._by_float32, *self._by_step):
            for factor, axis in itertools.product(FAR_APART, self.axes):
                start = factor * self._example[axis]
                yield from itertools.islice((found for found in candidates if found[axis] >= start), 1)

    @cached_property
    def _by_float32(self) -> list[list[Sizes]]:
        return [list(self._where(ROUNDINGS[:1], make)) for make in self._makes_whole]

    @cached_property
    def _by_step(self) -> list[list[Sizes]]:
        if self._makes_whole is _OF_FRACTIONS:  # every whole quotient of sizes would be one
            return []
        return [list(self._where(ROUNDINGS[1:], make)) for make in self._makes_whole]

    def _where(self, roundings: Sequence[Rounding], make: Whole) -> Iterator[Sizes]:
        for axis in self.axes:
            sizes = self._looked_at(axis)
            differs, known = self._differ(roundings, make, axis)
            for place in np.flatnonzero(differs | ~known):
                found = self._at(axis, int(sizes[place]))
                if known[place] or self._differs(roundings, make, found):
                    yield found

    def _looked_at(self, axis: str) -> Array:
        least, most = self._range(axis)
        return np.arange(least, min(most, FAR) + 1)

    def _differ(self, roundings: Sequence[Rounding], make: Whole, axis: str) -> tuple[Array, Array]:
        """Where `_differs` holds along an axis, and where that is known; by numpy."""
        found = [] if self._growing else [self._along_axis(axis, one) for one in (None, *roundings)]
        values = [value for value in found if value is not None]
        if len(values) <= len(roundings):
            unknown = np.zeros(len(self._looked_at(axis)), bool)
            return unknown, unknown
        exact, *others = values
        as_whole = _AT_ONCE[make]
        differs = np.zeros(len(exact.numbers), bool)
        for value in others:
            differs |= value.valid & (as_whole(value.numbers.astype(np.float64)) != as_whole(exact.numbers))
        is_finite = np.logical_and.reduce([np.isfinite(value.numbers) | ~value.valid for value in (exact, *others)])
        known = np.logical_and.reduce([value.known for value in (exact, *others)])
        return differs & exact.valid & is_finite & known, known

    def _along_axis(self, axis: str, rounded: Rounding | None) -> many_sizes.Values | None:
        """The expression at the sizes of one axis; None where numpy cannot compute it."""
        key = (axis, rounded)
        if key not in self._found:
            sizes = self._looked_at(axis)
            columns = [sizes if name == axis else np.full(len(sizes), self._example[name]) for name in self.axes]
            self._found[key] = self._at_once(self.question.expression, columns, rounded)
        return self._found[key]

    def _differs(self, roundings: Sequence[Rounding], make: Whole, sizes: Mapping[str, int]) -> bool:
        key = tuple(sizes[axis] for axis in self.axes)
        exact = self.answer(sizes)
        if any(abs(part(*key) or 0) >= LIMIT for part in self._growing):
            return exact is not None
        values = [exact, *(self._rounded[one](*key) for one in roundings)]
        if exact is None or not all(map(math.isfinite, (v for v in values if v is not None))):
            return False
        return any(value is not None and make(value) != make(exact) for value in values)


def _itself(number: Any) -> Any:
    return number


_OF_WHOLE: tuple[Whole, ...] = (_itself,)
_OF_FRACTIONS: tuple[Whole, ...] = (math.floor, round, math.ceil)
"""What a model may make of a number that it computes, to compare it or to take it as a size: of a fraction, a number
that is whole."""

_AT_ONCE: dict[Whole, Callable[[Array], Array]] = {
    _itself: _itself,
    math.floor: np.floor,
    round: np.rint,
    math.ceil: np.ceil,
}
"""The same of many numbers."""
