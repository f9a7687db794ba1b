"""The sizes at which a model is still to be asked, in the order of how much may depend on what it is asked there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import IntEnum

from torch_onnx_compat.questions.search import Sizes


class Rank(IntEnum):
    """Whose question has another answer at some sizes; the first may change most."""

    PYTHON = 0
    """The model's Python, which goes another way there."""
    OPERATOR = 1
    """An operator: shapes may be others, of which Python asks. A slice past the end is empty."""
    OPERATOR_OF_ONE = 2
    """An operator, of an axis of 1: mostly broadcasts and strides."""


class Frontier:
    """Sizes at which the model is still to be asked."""

    def __init__(self) -> None:
        self._by_rank: dict[Rank, list[Sizes]] = {rank: [] for rank in Rank}

    def __iter__(self) -> Iterator[Sizes]:
        return itertools.chain(*self._by_rank.values())

    def __bool__(self) -> bool:
        return any(self._by_rank.values())

    def add(self, sizes: Sizes, rank: Rank) -> None:
        """Puts sizes behind those of the same rank."""
        self._by_rank[rank].append(sizes)

    def pop(self, last: Rank) -> Sizes | None:
        """Takes the first sizes of the first rank that has any; None if there are none up to the last rank."""
        return next((sizes.pop(0) for rank, sizes in self._by_rank.items() if rank <= last and sizes), None)

    def discard(self, sizes: Sizes) -> bool:
        """Takes off this very entry, and not another question's of equal sizes; tells whether it was there."""
        for of_rank in self._by_rank.values():
            for place, one in enumerate(of_rank):
                if one is sizes:
                    del of_rank[place]
                    return True
        return False
