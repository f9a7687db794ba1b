"""The sizes of the dynamic axes that a file of few bits is judged at: those of its inputs, and a few others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch_onnx_compat.inputs.inputs import Inputs, is_within

FEW = 4
"""Inputs that are brought to each other size."""

SECONDS = 10.0
"""Seconds that judging at other sizes may take; what is left then is noted."""

SHOWN = 6
"""Sizes of an axis that are listed; of more, the least and the largest are told."""


@dataclass(frozen=True)
class SizeLoss:
    """What a file loses at another size of a dynamic axis.

    Attributes:
        axis: The axis.
        size: Its size.
        loss: The loss there, infinite where the file fails.
        is_over: Whether it is over the limit.
    """

    axis: str
    size: int
    loss: float
    is_over: bool

    def __str__(self) -> str:
        return (
            f"{self.loss:.2g} at {self.axis}={self.size}"
            if math.isfinite(self.loss)
            else f"fails at {self.axis}={self.size}"
        )


@dataclass(frozen=True)
class Move:
    """Inputs that are brought to one size of one axis."""

    axis: str
    size: int
    inputs: tuple[Inputs, ...]

    def __str__(self) -> str:
        return f"{self.axis}={self.size}"


def sizes_of(inputs: Sequence[Inputs]) -> dict[str, tuple[int, ...]]:
    """The sizes that the dynamic axes have in some inputs, in order, by axis."""
    found: dict[str, set[int]] = {}
    for given in inputs:
        for axis, size in given.sizes().items():
            found.setdefault(axis, set()).add(size)
    return {axis: tuple(sorted(sizes)) for axis, sizes in found.items()}


def moves_of(inputs: Sequence[Inputs]) -> Iterator[Move]:
    """The inputs at 1, 2, half of the least and double of the largest size of each axis, where not all have it.

    An input that has the size comes first.
    """
    for axis, known in sizes_of(inputs).items():
        for size in sorted({1, 2, max(known[0] // 2, 1), 2 * known[-1]}):
            if known == (size,) or not is_within(inputs[0].bounds(), axis, size):
                continue
            nearest = [given for given in inputs if given.sizes()[axis] == size]
            nearest += [given for given in inputs if given.sizes()[axis] != size]
            yield Move(axis, size, tuple(given.at_sizes({axis: size}) for given in nearest[:FEW]))


def in_words(sizes: Mapping[str, tuple[int, ...]]) -> str:
    """``b=2, t=8 or 16``; of many sizes the least and the largest."""
    return ", ".join(f"{axis}={_listed(found)}" for axis, found in sizes.items())


def _listed(sizes: Sequence[int]) -> str:
    if len(sizes) > SHOWN:
        return f"{sizes[0]} … {sizes[-1]}"
    return " or ".join(filter(None, (", ".join(map(str, sizes[:-1])), str(sizes[-1]))))
