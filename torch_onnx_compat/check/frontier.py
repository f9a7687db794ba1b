"""The sizes at which a model is still to be asked, in the order of how much may depend on what it is asked there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import IntEnum

from torch_onnx_compat.inputs.inputs import Bounds
from torch_onnx_compat.questions.log import SymbolicRun
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sides, Sizes


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


def is_known_at_one(run: SymbolicRun, asked_at: Sizes, sizes: Sizes, bounds: Bounds) -> bool:
    """Whether a case at an axis of 1 has shown all that another run there could ask.

    Where it is the only axis, what is asked there and nowhere else is asked of one size, and has one answer. And what
    the model's Python does there is what it does at larger sizes, if only operators see the 1.

    Args:
        run: What was asked at larger sizes.
        asked_at: Those sizes.
        sizes: The sizes to ask at.
        bounds: Smallest and largest size of each axis.
    """
    if list(sizes.values()) != [1] or min(asked_at.values()) <= 2 or not run.is_complete or run.drops_sizes:
        return False
    return all(_is_of_broadcasting(question, asked_at, bounds) for question in run.questions if question.is_asked)


def _is_of_broadcasting(question: Question, asked_at: Sizes, bounds: Bounds) -> bool:
    """Whether a question has the same answer at an axis of 1, or is an operator's, and has it at 2."""
    sides = Sides(question, asked_at, bounds)
    is_other, is_other_at_two = (sides.is_other(dict.fromkeys(asked_at, size)) for size in (1, 2))
    return not is_other or (question.chooses_kernel and not is_other_at_two)
