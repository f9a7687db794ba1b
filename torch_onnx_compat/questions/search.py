"""For each question about sizes: whether every size has one answer, and else at which sizes the answer is another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from torch_onnx_compat.backends.internals import expressions, many_sizes
from torch_onnx_compat.inputs.inputs import Bounds, is_within
from torch_onnx_compat.questions.question import Question

Sizes = dict[str, int]

FAR = 4096
"""Largest size that is looked at where the caller gave no limit."""

SAMPLED = 24
"""Sizes of each axis at which two answers are looked for before the range of the answers is computed."""

MIXED = 5
"""Axes at most of which some are moved and others not."""

NAMED = 16
"""Sizes at most that come from the numbers which the code names."""


UNEVEN = (*range(1, 34), *range(40, 129, 8), *range(144, 513, 16))
"""Sizes for which the size of another axis is solved."""

PROPORTION = 4.0
"""The proportion of two axes that is tried first: far from a square, and not a line."""

MOST_UNEVEN = 4
"""Sizes at most that are offered for each pair of axes, in each order."""

MOST_NUMBERS = 32
"""Numbers at most, each of which a file is tried at."""

TOGETHER = 24
"""Sizes up to which each of two axes has all sizes beside each of the other's."""


class Sides:
    """The two sides of one question: the sizes with the example's answer, and the others.

    Args:
        question: The question.
        example: Sizes at which it was asked, by axis name.
        bounds: Smallest and largest size of each axis.
    """

    def __init__(self, question: Question, example: Sizes, bounds: Bounds) -> None:
        self.question = question
        self._example, self._bounds = example, bounds
        self._known: dict[tuple[int, ...], Any] = {}
        self.axes = sorted(str(symbol) for symbol in question.expression.free_symbols)
        self._symbols = sorted(question.expression.free_symbols, key=str)
        self._value = expressions.compile_expression(question.expression, self._symbols)

    @cached_property
    def is_proven(self) -> bool:
        """Whether every size within the bounds has the same answer."""
        if self._has_two_answers():
            return False
        ranges = {symbol: self._bounds.get(str(symbol), (1, None)) for symbol in self._symbols}
        return expressions.has_one_value(self.question.expression, ranges)

    def _has_two_answers(self) -> bool:
        """Whether the answer differs at some sizes all over the bounds: quicker to see than their range."""
        columns = []
        for place, axis in enumerate(self.axes):
            least, most = self._range(axis)
            steps = [min(size, most) for size in range(least, least + SAMPLED)]
            # The axes have other sizes at each step, the last ones far apart.
            far = [min(least + (place + 1) * 3**power, most) for power in range(8)]
            columns.append(np.array([self._example[axis], *np.roll(steps, 3 * place), *far]))
        values = self._at_once(self.question.expression, columns) if columns else None
        if values is None:
            return False
        found = values.numbers[values.valid & values.known]
        return bool((found != found[:1]).any())

    @cached_property
    def fixed_axis(self) -> str:
        """The axis of which the example's answer leaves one size, as ``n == 3`` does; empty if it leaves more."""
        if len(self.axes) != 1 or self.question.kind != "condition" or not self.question.is_equality:
            return ""
        holds = bool(self.answer(self._example)) == (type(self.question.expression).__name__ == "Equality")
        return self.axes[0] if holds and expressions.has_one_solution(self.question.expression) else ""

    @cached_property
    def _computes_floats(self) -> bool:
        return expressions.computes_floats(self.question.expression)

    def answer(self, sizes: Mapping[str, int]) -> Any:
        """The answer at some sizes; None where there is none."""
        key = tuple(sizes[axis] for axis in self.axes)
        if key not in self._known:
            self._known[key] = self._value(*key)
        return self._known[key]

    def _at_once(
        self, expression: Any, columns: Sequence[many_sizes.Array], rounded: Callable[[Any], Any] | None = None
    ) -> many_sizes.Values | None:
        """An expression at many sizes, an array of them for each axis; None where numpy cannot compute it."""
        try:
            return many_sizes.values_at(expression, self._symbols, columns, rounded)
        except KeyError:
            return None

    def is_other(self, sizes: Mapping[str, int]) -> bool:
        """Whether these sizes are on the other side."""
        answer = self.answer(sizes)
        return answer is not None and bool(answer != self.answer(self._example))

    def distance(self, sizes: Mapping[str, int]) -> float:
        """How far apart the two sides of a comparison are at some sizes; 0 where nothing is compared, or is known."""
        if self._difference is None:
            return 0.0
        found = self._difference(*(sizes[axis] for axis in self.axes))
        return 0.0 if found is None else abs(float(found))

    @cached_property
    def _difference(self) -> Callable[..., Any] | None:
        expression = self.question.expression
        if not getattr(expression, "is_Relational", False) or any(side.is_Boolean for side in expression.args):
            return None
        return expressions.compile_expression(expression.lhs - expression.rhs, self._symbols)

    def others(self) -> Iterator[Sizes]:
        """Sizes on the other side, the nearest first; one axis varies, or all together; some of them, if need be."""
        hits = [sizes for axis in self.axes for sizes in self._along([axis])]
        if len(self.axes) > 1:
            hits += self._along(self.axes)
            hits += [sizes for sizes in self._swapped() if self.is_other(sizes)]
        if len(self.axes) > 2 and not hits:
            hits += [sizes for sizes in self._mixed() if self.is_other(sizes)]
        if not hits and type(self.question.expression).__name__ == "And":
            hits += [sizes for sizes in self._joint() if self.is_other(sizes)]
        unique = {tuple(sizes.items()): sizes for sizes in hits}
        yield from sorted(unique.values(), key=self._distance)

    def uneven(self) -> Iterator[Sizes]:
        """Sizes at which an equality holds, and two axes have other proportions than in the hits so far.

        For each pair of axes one is given a size, and the other is solved for: ``h * w == 16`` holds at 2 and 8, too.
        The example may be on this side, too: where it is 4 x 4, both branches may agree there, and nowhere else.
        """
        for first, second in itertools.permutations(self.axes, 2):
            found: list[tuple[tuple[bool, float], Sizes]] = []  # a line comes last
            for size in UNEVEN:
                at = partial(self._at_two, first, size, second)
                roots = self._roots(second, at) if is_within(self._bounds, first, size) else ()
                for other in roots:
                    if other > size and is_within(self._bounds, second, other):
                        found.append(((size == 1, abs(math.log(other / size / PROPORTION))), at(other)))
            yield from [sizes for _, sizes in sorted(found, key=lambda pair: pair[0])][:MOST_UNEVEN]

    def past_refusal(self, refused: Sizes, asked: Sequence[Question]) -> Iterator[Sizes]:
        """Sizes on the other side that have what the model asks for at sizes that it refuses there.

        ``if height == 3: x = x + self.table`` runs at the one width at which the table has as many cells. And where
        ``if height > 224:`` wants a multiple of 32, it is one.

        Args:
            refused: Sizes on the other side.
            asked: What the model asks there; what the call has asked that fails is among it, as Python's questions.
        """
        for question in reversed(asked):  # the last one made it fail
            if question.kind == "condition" and not question.chooses_kernel:
                yield from filter(self.is_other, Sides(question, refused, self._bounds).others())

    def _at_two(self, first: str, size: int, second: str, other: int) -> Sizes:
        return {**self._example, first: size, second: other}

    @cached_property
    def each(self) -> dict[Any, list[Sizes]] | None:
        """Where a number has few values: sizes for each of these but the example's, the nearest first; else None.

        ``n % 4`` is a number of four, each of which code may take for another thing: as the index of a tuple, say.
        """
        ranges = {symbol: self._bounds.get(str(symbol), (1, None)) for symbol in self._symbols}
        if not expressions.has_few_values(self.question.expression, ranges):
            return None
        wanted, found = self.answer(self._example), dict[Any, list[Sizes]]()
        for columns in self._grids():
            values = self._at_once(self.question.expression, columns)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            answers = None if values is None else np.where(values.valid & values.known, values.numbers, np.nan).tolist()
            for place, row in enumerate(rows):
                sizes = {**self._example, **dict(zip(self.axes, map(int, row), strict=True))}
                answer = self.answer(sizes) if answers is None or math.isnan(answers[place]) else answers[place]
                if answer is not None and answer != wanted:
                    found.setdefault(answer, []).append(sizes)
                    if len(found) > MOST_NUMBERS:
                        return None
        return {answer: sorted(sizes, key=self._distance) for answer, sizes in found.items()}

    def _grids(self) -> Iterator[list[many_sizes.Array]]:
        """Sizes to look at for every value of a number, an array for each axis: along each of them, and of each two."""
        for axis in self.axes:
            least, most = self._range(axis)
            along = np.arange(least, min(most, FAR) + 1)
            yield [along if one == axis else np.full(len(along), self._example[one]) for one in self.axes]
        for pair in itertools.combinations(self.axes, 2):
            ranges = [self._range(axis) for axis in pair]
            steps = [np.arange(least, min(most, least + TOGETHER) + 1) for least, most in ranges]
            grid = dict(zip(pair, (part.ravel() for part in np.meshgrid(*steps)), strict=True))
            count = len(grid[pair[0]])
            yield [grid[one] if one in grid else np.full(count, self._example[one]) for one in self.axes]

    def named(self) -> Iterator[Sizes]:
        """Sizes at which the expression is a number that the code around the question names, or the next one."""
        found: list[Sizes] = []
        for step in (0, 1, -1):
            for number in self.question.numbers:
                found += itertools.islice(self._sizes_for(number + step), 1)
        if self.question.kind == "number":  # a number of rounds, say: two and a bit of each length
            for number in self.question.numbers:
                found += itertools.islice(self._sizes_for(2 * number + 1), 1)
        unique = {tuple(sizes.items()): sizes for sizes in found if sizes != self._example}
        yield from list(unique.values())[:NAMED]

    def _sizes_for(self, number: int) -> Iterator[Sizes]:
        for axis in self.axes:
            found = self._solve(partial(self._at, axis), axis, number)
            if found is not None and self._bounds_hold(found, axis):
                yield found

    def _along(self, axes: Sequence[str]) -> list[Sizes]:
        """Sizes on the other side where these axes all have one size."""

        def at(size: int) -> Sizes:
            return {**self._example, **dict.fromkeys(axes, size)}

        def is_allowed(size: int) -> bool:
            return all(is_within(self._bounds, axis, size) for axis in axes)

        tried = sorted(filter(is_allowed, set(self._ladder(axes))))
        sides = list(zip(tried, self._are_other(axes, tried), strict=True))
        hits = [at(size) for size, other in sides if other]
        for (low, before), (high, after) in itertools.pairwise(sides):
            if before != after and high - low > 1:
                hits += [at(size) for size in self._boundary(low, high, before, at)]
        if not hits and self.question.is_equality:
            roots = filter(is_allowed, (size for axis in axes for size in self._roots(axis, at)))
            hits += [at(size) for size in roots if self.is_other(at(size))]
        return hits

    def _are_other(self, axes: Sequence[str], tried: Sequence[int]) -> list[bool]:
        """Whether each of these sizes, of all these axes, is on the other side."""
        many = np.array(tried, np.float64)  # the constants in an expression may be no int64
        columns = [many if axis in axes else np.full(len(many), self._example[axis]) for axis in self.axes]
        found, wanted = self._at_once(self.question.expression, columns), self.answer(self._example)
        if found is None or wanted is None:
            return [self.is_other({**self._example, **dict.fromkeys(axes, size)}) for size in tried]
        others: list[bool] = (found.valid & (found.numbers != wanted)).tolist()
        for place in np.flatnonzero(~found.known).tolist():
            others[place] = self.is_other({**self._example, **dict.fromkeys(axes, tried[place])})
        return others

    def _boundary(self, low: int, high: int, before: bool, at: Callable[[int], Sizes]) -> Iterator[int]:
        """The two sizes between which the answer changes; the one on the other side."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.is_other(at(middle)) == before:
                low = middle
            else:
                high = middle
        yield high if not before else low

    def _roots(self, axis: str, at: Callable[[int], Sizes]) -> Iterator[int]:
        """Sizes at which both sides of an equality agree, which a ladder misses."""
        left, right = self.question.expression.args
        difference = expressions.compile_expression(left - right, self._symbols)
        found = self._solve(at, axis, 0, difference)
        if found is not None and difference(*(found[one] for one in self.axes)) == 0:
            yield found[axis]

    def _joint(self) -> Iterator[Sizes]:
        """Sizes at which several equalities hold together: for each, an axis is moved that none before it has moved."""
        for parts in itertools.permutations(self.question.expression.args):
            sizes, free = self._example, set(self.axes)
            for part in parts:
                sides = Sides(replace(self.question, expression=part), sizes, self._bounds)
                if not sides.answer(sizes):
                    found = ((axis, hit) for axis in sorted(free & set(sides.axes)) for hit in sides._along([axis]))
                    axis, sizes = next(found, ("", sizes))
                    free.discard(axis)
            yield sizes

    def _at(self, axis: str, size: int) -> Sizes:
        return {**self._example, axis: size}

    def _bounds_hold(self, sizes: Sizes, axis: str) -> bool:
        """Whether a size was found, and not the end of the range, beyond which it lies."""
        return sizes[axis] not in self._range(axis) or sizes[axis] == 1

    def _solve(self, at: Callable[[int], Sizes], axis: str, number: int, function: Any = None) -> Sizes | None:
        """The first sizes at which a function that rises, or falls, with an axis reaches a value, or passes it."""
        function = self._value if function is None else function

        def value(size: int) -> Any:
            return function(*(at(size)[a] for a in self.axes))

        least, most = self._range(axis)
        first, last = value(least), value(most)
        if first is None or last is None or first == last:
            return None
        rises = bool(first < last)
        low, high = least, most
        while low < high:
            middle = (low + high) // 2
            here = value(middle)
            if here is None:
                return None
            if (here < number) if rises else (here > number):
                low = middle + 1
            else:
                high = middle
        return at(low)

    def _ladder(self, axes: Sequence[str]) -> Iterable[int]:
        """Sizes to look at: small ones, neighbours of the example's, of the expression's constants, and powers.

        What is computed in floating point may come out otherwise at any size: 0.7 * 90 is less than 63.
        """
        if self._computes_floats:
            yield from range(1, FAR + 1)
        yield from range(1, 34)
        for axis in axes:
            example = self._example[axis]
            yield from range(max(1, example - 9), example + 34)
            yield from (2 * example, 2 * example + 1, example // 2, 4 * example)
        for constant in expressions.constants_of(self.question.expression):
            yield from (constant - 1, constant, constant + 1)
        yield from (2**power + step for power in range(6, 13) for step in (-1, 0, 1))

    def _swapped(self) -> Iterator[Sizes]:
        for one in self.axes:
            for other in self.axes:
                size = self._example[other]
                for new in (size - 1, size, size + 1):
                    if one != other and is_within(self._bounds, one, new):
                        yield {**self._example, one: new}

    def _mixed(self) -> Iterator[Sizes]:
        """Each axis at its size, at 1, or longer."""
        choices = {axis: (self._example[axis], 1, 2 * self._example[axis] + 3) for axis in self.axes[:MIXED]}
        for sizes in itertools.product(*choices.values()):
            found = {**self._example, **dict(zip(choices, sizes, strict=True))}
            if all(is_within(self._bounds, axis, size) for axis, size in found.items()):
                yield found

    def _range(self, axis: str) -> tuple[int, int]:
        least, most = self._bounds.get(axis, (1, None))
        return max(1, least), FAR if most is None else most

    def _distance(self, sizes: Sizes) -> tuple[float, int]:
        # Smaller sizes are cheaper to try than larger ones of the same distance.
        ratios = [max(sizes[a], 1) / max(self._example[a], 1) for a in self.axes]
        return max(ratio if ratio >= 1 else 1 + (1 - ratio) / 4 for ratio in ratios), sum(sizes.values())
