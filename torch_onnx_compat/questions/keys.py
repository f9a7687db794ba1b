"""What the sizes may be found as that a run without values looks up: each key is a condition on them."""

from __future__ import annotations

import itertools
import types
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torch_onnx_compat.backends.keys import containers_at, numbers_in
from torch_onnx_compat.tracing import below_function_modes

_LAST = 4
"""Sizes of one key at most."""


@dataclass(frozen=True)
class _LookUp:
    container: Collection[Any]
    keys: tuple[Any, ...]
    """Those that it had then, as the model may drop some later; and the sizes that it may look up itself."""
    sizes: tuple[Any, ...]
    """What was hashed last: one key, a tuple perhaps."""
    place: str


class Keys:
    """The sizes that were hashed, and the containers that they may be found in."""

    def __init__(self) -> None:
        self._instruction: tuple[int, int] = (0, 0)
        self._latest: list[Any] = []
        self._look_ups: list[_LookUp] = []

    def note(self, expression: Any, frame: types.FrameType, place: str, near: Collection[int] = ()) -> bool:
        """Notes that a size is hashed; says whether it is known where it is looked up.

        Args:
            expression: The size.
            frame: The frame that hashes it. What one instruction hashes one after another may be one key, a tuple.
            place: The model's statement.
            near: The numbers that the frame's code names. What is stored under a size, in a container of the
                function's own, may be looked up under one of these.
        """
        containers = containers_at(frame)
        if containers is None:
            return False
        instruction = id(frame), frame.f_lasti
        self._latest = [*(self._latest if instruction == self._instruction else ()), expression][-_LAST:]
        self._instruction = instruction
        own = set(map(id, frame.f_locals.values()))
        others = tuple(_fixed_sizes(frame))
        for container in containers:
            keys = (*container, *others, *(near if id(container) in own else ()))
            self._look_ups.append(_LookUp(container, keys, tuple(self._latest), place))
        return True

    def conditions(self) -> Iterator[tuple[Any, str]]:
        """For each key that a size may be found as, the condition that it is, and the place.

        To be called once the model has run: the keys that it adds after it has looked a size up are met then.
        """
        for found in self._look_ups:
            for key in (*found.keys, *found.container):
                for condition in _matches(found.sizes, list(numbers_in(key))):
                    yield condition, found.place


def _matches(hashed: Sequence[Any], numbers: Sequence[Any]) -> Iterator[Any]:
    """The conditions under which the last sizes that were hashed are these numbers, each in one order."""
    import sympy

    *earlier, last = hashed
    count = min(len(hashed), len(numbers))
    for sizes in itertools.combinations(earlier, max(count - 1, 0)) if count else ():
        for some in itertools.combinations(numbers, count):
            pairs = set(zip((*sizes, last), some, strict=True))
            fixed = [size for size, number in pairs if isinstance(number, int)]
            if len(set(fixed)) == len(fixed):  # one size is not two numbers
                yield sympy.And(*(sympy.Eq(size, number) for size, number in pairs))


def _fixed_sizes(frame: types.FrameType) -> Iterator[int]:
    """The sizes that do not vary of a frame's tensors: what is stored under a size may be found under one of these."""
    tensors = [value for value in list(frame.f_locals.values()) if isinstance(value, Tensor)]
    with below_function_modes():  # it is not the model that reads them
        sizes = [size for tensor in tensors for size in tensor.shape if isinstance(size, int)]
    yield from dict.fromkeys(sizes)
