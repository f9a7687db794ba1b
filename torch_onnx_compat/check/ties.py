"""Axes that the model takes other sizes of only together: one is twice the other, or one longer, or a sum of two.

That one of them is fixed is no news to the caller; how to say that they are tied may be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs.inputs import Axis, Inputs, is_within
from torch_onnx_compat.observe import Observation

STEPS = (1, 2, 32, -1)
"""By how much the others of a tie are longer; shorter where no longer one is allowed."""

ENOUGH = 2
"""Sizes of each of the others that the model has to take."""

MOST_AXES = 6
"""Axes up to which sums of two are looked at."""


@dataclass(frozen=True)
class Tie:
    """An axis that follows from others."""

    name: str
    axis: Axis
    """The others, each with a factor, and what is added."""

    def hint(self, inputs: Inputs) -> str:
        """How a caller says so."""
        places = [
            f"{name!r}: {{{dim}: {self.axis.name!r}}}"
            for name, axes in zip(inputs.names, inputs.axes, strict=True)
            for dim, axis in axes.items()
            if axis.name == self.name
        ]
        return (
            f"it takes others where {self.name!r} is {self.axis.name}: name the axis so, as in dynamic={{"
            f"{', '.join(places)}, ...}}"
        )


def find_tie(observation: Observation, name: str) -> Tie | None:
    """A tie of an axis to others in which the original takes several sizes of it."""
    inputs = observation.prepared.inputs
    return next((tie for tie in _ties(inputs, name) if _holds(observation, tie)), None)


def one_size_only(observation: Observation, name: str, reason: str) -> CompatError:
    """The error of an axis that is declared dynamic, and of which the original takes one size.

    Args:
        observation: Has the original.
        name: Of the axis.
        reason: Why the original refuses other sizes.
    """
    inputs = observation.prepared.inputs
    return CompatError(
        f"axis {name!r} is declared dynamic, but the model itself takes no size but {inputs.sizes()[name]}, with the "
        f"example's values in its other inputs: {reason}; {_remedy(observation, name)}."
    )


def _remedy(observation: Observation, name: str) -> str:
    inputs = observation.prepared.inputs
    tie = find_tie(observation, name)
    if tie is not None:
        return tie.hint(inputs)
    pairs = zip(inputs.names, inputs.tensors, inputs.axes, strict=True)
    whole = [(n, axes) for n, x, axes in pairs if not x.is_floating_point()]
    numbers = [n for n, axes in whole if all(name not in axis.roots for axis in axes.values())]
    values = f"if the values of {' or '.join(numbers)} decide it, give samples that change both; else "
    return f"{values if numbers else ''}leave the axis out"


def hint_where_longer(observation: Observation, longer: Inputs) -> str:
    """What to say of a longer example that the original refuses; empty where no tie of what is longer is found."""
    inputs = observation.prepared.inputs
    names = [name for name, size in longer.sizes().items() if size != inputs.sizes()[name]]
    tie = next(filter(None, (find_tie(observation, name) for name in names)), None)
    return "" if tie is None else f"; {tie.hint(inputs)}."


def _ties(inputs: Inputs, name: str) -> Iterator[Tie]:
    """Ties of an axis that hold in the example, the most telling ones first."""
    sizes = {one: size for one, size in inputs.sizes().items() if one.isidentifier() and size}
    others = [one for one in sizes if one != name]
    pairs = [pair for other in others if name in sizes for pair in ((name, other), (other, name))]
    for longer, shorter in pairs:
        factor, rest = divmod(sizes[longer], sizes[shorter])
        if not rest and factor > 1:
            yield Tie(longer, Axis(f"{factor}*{shorter}", terms=((shorter, factor),)))
    for one, other in itertools.combinations(sizes, 2) if len(sizes) <= MOST_AXES else ():
        for total in sizes:
            if name in (total, one, other) and sizes[total] == sizes[one] + sizes[other]:
                yield Tie(total, Axis(f"{one} + {other}", terms=((one, 1), (other, 1))))
    for longer, shorter in pairs:
        more = sizes[longer] - sizes[shorter]
        if more > 0:
            yield Tie(longer, Axis(f"{shorter} + {more}", terms=((shorter, 1),), offset=more))


def _holds(observation: Observation, tie: Tie) -> bool:
    """Whether the original takes other sizes of each axis of a tie with it."""
    inputs = observation.prepared.inputs
    sizes, bounds = inputs.sizes(), inputs.bounds()

    def takes(moved: Mapping[str, int]) -> bool:
        there = {**moved, tie.name: tie.axis.size(moved)}
        is_allowed = all(is_within(bounds, name, size) for name, size in there.items())
        return is_allowed and observation.accepts(inputs.at_sizes(there))

    return all(
        sum(1 for _ in itertools.islice(filter(takes, ({**sizes, root: sizes[root] + n} for n in STEPS)), ENOUGH))
        == ENOUGH
        for root in tie.axis.roots
    )
