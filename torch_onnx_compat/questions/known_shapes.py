"""What operators yielded in earlier runs of one model. A run at other sizes calls most of them with the same formulas.

torch's own run of an operator on fakes takes milliseconds. What it yields depends on the formulas of its arguments'
shapes, and on the answers to what it asks of the sizes: both are kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

Layout = tuple[tuple[Any, ...], tuple[Any, ...], Any, Any]
"""Shape, strides, type and offset of a fake; of a symbolic number its formula."""

Answers = Sequence[tuple[Any, Any]]
"""Formulas that were asked for, and what they came to, in order."""


@dataclass(frozen=True)
class OperatorResult:
    """What an operator yielded.

    Attributes:
        form: The result, a layout in place of each fake.
        answers: What the operator asked.
        pending: What it counts as having asked: of two ways to run it, one may ask less.
    """

    form: Any
    answers: Answers
    pending: Sequence[Any]


@dataclass
class KnownShapes:
    """What operators yielded, by their arguments.

    Args:
        symbols: What the symbols stand for. They have the same names in each run, as long as a run makes the same ones.
    """

    symbols: dict[Any, Any] = field(default_factory=dict)
    _known: dict[Hashable, list[OperatorResult]] = field(default_factory=dict)

    def begin(self, symbols: dict[Any, Any]) -> None:
        """Says what the symbols of the run that begins stand for."""
        if symbols != self.symbols:
            self._known.clear()
            self.symbols = dict(symbols)

    def keep(self, key: Hashable, yielded: OperatorResult) -> None:
        """Keeps what an operator yielded."""
        self._known.setdefault(key, []).append(yielded)

    def find(self, key: Hashable, answer: Any) -> OperatorResult | None:
        """What an operator yields, if it was seen with these arguments and has the same answers.

        Args:
            key: The operator and its arguments.
            answer: Gives the answer to what an operator asks.
        """
        known = self._known.get(key, ())
        return next((one for one in known if all(answer(asked) == came_to for asked, came_to in one.answers)), None)


def is_like(layout: Layout, tensor: Tensor, number: Any) -> bool:
    """Whether a layout is that of the tensor beside the fake; what torch decides without asking shows there.

    Args:
        layout: Of a fake.
        tensor: With the sizes of the run.
        number: Gives a formula at these sizes.
    """
    shape, strides, dtype, _ = layout
    has_sizes = len(shape) == tensor.dim() and all(map(_is_equal, map(number, shape), tensor.shape))
    return has_sizes and dtype == tensor.dtype and all(map(_is_equal, map(number, strides), tensor.stride()))


def _is_equal(one: Any, other: Any) -> bool:
    return bool(one == other)
