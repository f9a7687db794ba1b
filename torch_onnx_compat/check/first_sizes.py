"""The first sizes that a file is tried at: the smallest of each dynamic axis that the model takes, and a larger one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

from torch_onnx_compat.inputs.inputs import is_within
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.questions.cost import is_affordable
from torch_onnx_compat.questions.taken_sizes import TakenSizes

Case = TypeVar("Case")


class FirstSizes(Generic[Case]):
    """Tries them.

    Args:
        observation: Has the original, and the example.
        try_sizes: Makes the cases at some sizes; none where the model refuses them, of which it leaves a note.
        notes: Those notes.
    """

    def __init__(self, observation: Observation, try_sizes: Callable[..., Iterator[Case]], notes: list[str]) -> None:
        self.taken = TakenSizes(observation.prepared.inputs.sizes())
        self._observation, self._try_sizes, self._notes = observation, try_sizes, notes
        self._example = observation.prepared.inputs.sizes()
        self._bounds = observation.prepared.inputs.bounds()

    def smallest(self, name: str) -> Iterator[Case]:
        """A case at the smallest size that the model accepts; where sizes of 1 begin, few operators are right by luck.

        Where it refuses the smallest of the declared range, the next is searched by doubling, then by bisection, below
        the example's.
        """
        size = self._example[name]
        least = max(self._bounds.get(name, (1, None))[0], 1)
        if size <= least:
            return
        cases = list(self._try_size(name, least))
        if not cases:
            before = len(self._notes)
            cases = self._search_smallest(name, least, size)
            del self._notes[before:]
        yield from cases

    def _search_smallest(self, name: str, refused: int, accepted: int) -> list[Case]:
        """The case at the smallest size that the model accepts between two others; none if there is no such size."""
        cases: list[Case] = []
        step = 1
        while not cases and refused + step < accepted:
            cases = list(self._try_size(name, refused + step))
            if cases:
                accepted = refused + step
            else:
                refused, step = refused + step, 2 * step
        while accepted - refused > 1:
            between = (refused + accepted) // 2
            smaller = list(self._try_size(name, between))
            refused, accepted = (refused, between) if smaller else (between, accepted)
            cases = smaller or cases
        self.taken.set_floor(name, refused)
        return cases

    def _try_size(self, name: str, size: int) -> Iterator[Case]:
        if is_within(self._bounds, name, size):
            yield from self._try_sizes({name: size})

    def larger(self, name: str, heavy: bool, larger: dict[str, int]) -> Iterator[Case]:
        """A case at the first size above the example's, of a few candidates, that the model accepts."""
        size = self._example[name]
        odd = max(size, 3) + (2 if max(size, 3) % 2 else 1)
        candidates = [size + 1, odd] if heavy and size < 3 else [odd, size + 32, 2 * size, size // 2]
        # What is 1 in the example may be broadcast to another axis, and as long as that one.
        shared = filter(partial(self._is_affordable_at, name), self._example.values() if size == 1 else ())
        before = len(self._notes)
        for candidate in chain(candidates, shared):
            if candidate in (0, size) or not is_within(self._bounds, name, candidate):
                continue
            # Where numbers are lengths that have to vary with the axis, smaller ones would hide it.
            cases = list(self._try_sizes({name: candidate}, may_fit=False))
            if cases:
                larger[name] = candidate
                del self._notes[before:]
                yield from cases
                return

    def _is_affordable_at(self, name: str, size: int) -> bool:
        sizes = {**self._example, name: size}
        return is_affordable(self._observation.prepared.inputs, sizes, self._observation.takes_at_most)
