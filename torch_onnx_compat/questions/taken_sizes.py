"""What sizes the model takes, as its refusals show: what it will refuse is not tried again and again."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

Sizes = Mapping[str, int]

ENOUGH = 14
"""Refusals below the same floors, those included where other axes follow, after which nothing is tried there."""

KNOWN = 8
"""Refusals of one axis after which remainders tell which sizes it takes."""

DIVISORS = (2, 4, 8, 16, 32, 64, 128, 7, 14, 28, 56, 112, 224, 3, 6, 12, 24, 48, 96, 5, 10, 20, 40, 80)
"""Divisors of which sizes may have one remainder to be taken: of strides, and of windows and grids within them."""

PATIENCE = ((12, 6), (24, 3), (math.inf, 1))
"""Refusals in a row up to which so many sizes of one kind are tried before they count as refused."""


class TakenSizes:
    """The sizes that the model takes and refuses.

    A network of four strides takes no picture of eight cells, and one of windows no height but multiples of theirs.
    Each question that such a model asks of a height has sizes on its other side that are smaller still, or in between.

    Args:
        example: The example's sizes.
    """

    def __init__(self, example: Sizes) -> None:
        self._example = dict(example)
        self._taken = [self._example]
        self._steps = dict(self._example)
        self._floors: dict[str, int] = {}
        self._below: Counter[frozenset[str]] = Counter()
        self._refused: dict[str, set[int]] = defaultdict(set)
        self._in_a_row = 0

    @property
    def patience(self) -> int:
        """How many sizes of one kind to try before they count as refused."""
        return next(tries for most, tries in PATIENCE if self._in_a_row <= most)

    def set_floor(self, name: str, size: int) -> None:
        """Notes a size that the model refuses, as it does each smaller one that was tried, the others the example's."""
        self._floors[name] = size

    def accept(self, sizes: Sizes) -> None:
        """Notes sizes that the model takes: a floor above them was none."""
        full = {**self._example, **sizes}
        self._in_a_row = 0
        self._taken.append(full)
        for name, size in full.items():
            if 2 * size >= self._example[name]:  # small ones may do where all that is left is one cell
                self._steps[name] = math.gcd(self._steps[name], size)
        for name in self._below_floors(full):
            del self._floors[name]

    def refuse(self, sizes: Sizes) -> None:
        """Notes sizes that the model refuses."""
        full = {**self._example, **sizes}
        self._in_a_row += 1
        below = self._below_floors(full)
        if below:
            self._below[below] += 1
        for name in self._moved_alone(full):
            self._refused[name].add(full[name])

    def will_refuse(self, sizes: Sizes) -> bool:
        """Whether the model refuses these sizes, as far as anybody can tell without a run."""
        below = self._below_floors(sizes)
        return bool(below) and any(axes <= below for axes, count in self._below.items() if count >= ENOUGH)

    def may_refuse(self, sizes: Sizes) -> bool:
        """Whether an axis is no multiple of what divides all its sizes so far, where others were refused that are none.

        Sizes that are multiples are tried first.
        """
        return any(
            size % step != 0 and any(other % step for other in self._refused[name])
            for name, size in sizes.items()
            if (step := self._steps[name]) > 1
        )

    def is_unlikely(self, sizes: Sizes) -> bool:
        """Whether remainders tell apart what an axis takes and what it refuses, and the model refuses these sizes."""
        return any(
            divisor and size % divisor not in {taken[name] % divisor for taken in self._taken}
            for name, size in sizes.items()
            if name in self._example and (divisor := self._divisor(name))
        )

    def _divisor(self, name: str) -> int:
        """The first divisor with which no size that an axis takes has the remainder of one that it refuses; else 0.

        Two sizes that are taken have the same remainder: with a large divisor, all sizes have remainders of their own.
        """
        taken = {sizes[name] for sizes in self._taken}
        refused = self._refused[name] - set(range(self._floors.get(name, 0) + 1))
        for divisor in DIVISORS if len(refused) >= KNOWN else ():
            remainders = {size % divisor for size in taken}
            if len(remainders) < len(taken) and remainders.isdisjoint(size % divisor for size in refused):
                return divisor
        return 0

    def _below_floors(self, sizes: Sizes) -> frozenset[str]:
        return frozenset(name for name, floor in self._floors.items() if sizes.get(name, floor + 1) <= floor)

    def _moved_alone(self, sizes: Sizes) -> Iterator[str]:
        """The axes of which another size would be taken, the others being the same."""
        for taken in self._taken:
            others = [name for name, size in sizes.items() if taken[name] != size]
            if len(others) == 1:
                yield others[0]
