"""Sizes that come out otherwise in float32 or int64, which files have where Python has float64 and no limit."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from torch_onnx_compat.backends.internals import expressions
from torch_onnx_compat.inputs.inputs import Bounds, is_within
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import FAR, Sides, Sizes

STEP = 3e-7
"""Relative change of each fraction that a file's other order of operations may make, in roundings of float32: five."""

LIMIT = 2**63
"""Whole numbers from here on are no int64."""

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
        roundings = (np.float32, partial(operator.mul, 1 + STEP), partial(operator.mul, 1 - STEP))
        self._rounded = [expressions.compile_expression(question.expression, self._symbols, one) for one in roundings]
        parts = expressions.fast_growing_parts(question.expression)
        self._growing = [expressions.compile_expression(part, self._symbols) for part in parts]
        self._makes_whole = _OF_FRACTIONS if isinstance(self.answer(example), float) else _OF_WHOLE

    @cached_property
    def is_proven(self) -> bool:
        """Whether rounding decides at no size that is looked at."""
        return not any((*self._by_float32, *self._by_step))

    def is_other(self, sizes: Mapping[str, int]) -> bool:
        """Whether the expression has another value in float32."""
        return any(self._differs(self._rounded[:1], make, sizes) for make in self._makes_whole)

    def others(self) -> Iterator[Sizes]:
        """Sizes at which float32 has another value, the nearest first."""
        yield from sorted(itertools.chain(*self._by_float32), key=self._distance)

    def named(self) -> Iterator[Sizes]:
        """Sizes at which some rounding has another value, at several distances."""
        for candidates in (*self._by_float32, *self._by_step):
            for axis, factor in itertools.product(self.axes, FAR_APART):
                start = factor * self._example[axis]
                yield from itertools.islice((found for found in candidates if found[axis] >= start), 1)

    @cached_property
    def _by_float32(self) -> list[list[Sizes]]:
        return [list(self._where(self._rounded[:1], make)) for make in self._makes_whole]

    @cached_property
    def _by_step(self) -> list[list[Sizes]]:
        if self._makes_whole is _OF_FRACTIONS:  # every whole quotient of sizes would be one
            return []
        return [list(self._where(self._rounded[1:], make)) for make in self._makes_whole]

    def _where(self, rounded: Sequence[Callable[..., Any]], make: Callable[[Any], Any]) -> Iterator[Sizes]:
        for axis in self.axes:
            along = (self._at(axis, size) for size in range(1, FAR + 1) if is_within(self._bounds, axis, size))
            yield from (sizes for sizes in along if self._differs(rounded, make, sizes))

    def _differs(
        self, rounded: Sequence[Callable[..., Any]], make: Callable[[Any], Any], sizes: Mapping[str, int]
    ) -> bool:
        key = tuple(sizes[axis] for axis in self.axes)
        exact = self.answer(sizes)
        if any(abs(part(*key) or 0) >= LIMIT for part in self._growing):
            return exact is not None
        values = [exact, *(one(*key) for one in rounded)]
        if exact is None or not all(map(math.isfinite, (v for v in values if v is not None))):
            return False
        return any(value is not None and make(value) != make(exact) for value in values)


def _itself(number: float) -> float:
    return number


_OF_WHOLE: tuple[Callable[[Any], Any], ...] = (_itself,)
_OF_FRACTIONS: tuple[Callable[[Any], Any], ...] = (math.floor, round, math.ceil)
"""What a model may make of a number that it computes, to compare it or to take it as a size: of a fraction, a number
that is whole."""
