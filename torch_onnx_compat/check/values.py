"""The values that the original is run on at some sizes: random ones, else the given ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation, Reference

ALIKE = 4
"""Sizes that a statement refuses in the same words whatever the values, after which these are not blamed for others."""


@dataclass(frozen=True)
class Refused:
    """Sizes that the original refuses."""

    reason: str
    """Its words for the given values, and the statement."""

    @property
    def place(self) -> str:
        """The statement, ``models/net.py:41``; empty if the words name none."""
        return self.reason.rpartition("(at ")[2].removesuffix(")") if self.reason.endswith(")") else ""


class TakenValues:
    """Finds values that the original takes, and keeps them for the files that are tried later.

    Args:
        observation: Runs the original.
        draw: Random values in place of those of some inputs, for a label.
    """

    def __init__(self, observation: Observation, draw: Callable[[str, Inputs], Inputs]) -> None:
        self._observation, self._draw = observation, draw
        self._taken: dict[str, Inputs] = {}
        self._refused_alike: Counter[str] = Counter()
        """By statement: the sizes that it refused in the same words for random and for given values."""

    def at(self, label: str, inputs: Inputs, *, may_fit: bool) -> tuple[Inputs, Reference] | Refused:
        """Values that the original takes, and what it computes of them.

        Args:
            label: Names the sizes.
            inputs: The given values.
            may_fit: Whether whole numbers may be made to fit the sizes, where the model refuses those of the example.
        """
        reasons: list[str] = []
        for attempt in self._attempts(label, inputs, reasons, may_fit=may_fit):
            try:
                reference = self._observation.reference(label, attempt)
            except ModelRefused as refusal:
                reasons.append(str(refusal))
            else:
                self._taken[label] = attempt
                return attempt, reference
        refused = Refused(reasons[:2][-1])
        self._refused_alike[refused.place] += len(reasons) > 1 and len(set(reasons)) == 1
        return refused

    def _attempts(self, label: str, inputs: Inputs, reasons: list[str], *, may_fit: bool) -> Iterator[Inputs]:
        if label in self._taken:
            yield self._taken[label]
            return
        drawn = self._draw(label, inputs)
        yield drawn
        if self._refused_alike[Refused(reasons[-1]).place] < ALIKE:
            yield inputs
        fitted = self._observation.fit(inputs) if may_fit else inputs
        if fitted is not inputs:
            yield from (self._observation.fit(drawn), fitted)
