"""Dictionaries and sets in which a size is looked up: Python compares hashes first, and nobody hears with what.

In a trace a size is found in none of them, as the hash of a tensor is its identity. So what the original finds there
has to be known: the container is read off the statement, and each of its keys is a question about the size.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from torch import Tensor

from torch_onnx_compat.backends.checks import Place, containers_named
from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.tracing import below_function_modes

MOST = 16
"""Keys with numbers, in one container, that are compared; each of them may be a case for the proof."""

_LAST = 4
"""Sizes in one key."""


def containers_at(frame: types.FrameType) -> tuple[Collection[Any], ...] | None:
    """The dictionaries and sets in which a statement looks something up; None where it is not known which they are."""
    place = Place.of(frame)
    named = containers_named(place) or ()
    found = [part if isinstance(part, frozenset) else _value_of(part, frame) for part in named]
    known = tuple(one for one in found if isinstance(one, (dict, set, frozenset)))
    if len(known) < len(found) and place.column is not None:
        return None  # without a column, others are what else stands in the line, such as x.shape[0]
    return known if known and all(sum(map(_has_number, one)) <= MOST for one in known) else None


def holds_numbers(container: Collection[Any]) -> bool:
    """Whether a size may be found in a container, as far as its keys tell."""
    return any(map(_has_number, container))


def _value_of(path: str, frame: types.FrameType) -> Any:
    """What a path such as ``self.tables`` is in a frame; no code of the model's runs for it."""
    first, *rest = path.split(".")
    found = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        found = inspect.getattr_static(found, name, None)
    return found


def _fixed_sizes(frame: types.FrameType) -> Iterator[int]:
    """The sizes that do not vary of a frame's tensors: what is stored under a size may be found under one of these."""
    tensors = [value for value in list(frame.f_locals.values()) if isinstance(value, Tensor)]
    with below_function_modes():  # it is not the model that reads them
        sizes = [size for tensor in tensors for size in tensor.shape if isinstance(size, int)]
    yield from dict.fromkeys(sizes)


def _has_number(key: Any) -> bool:
    """Whether a number is a part of a key, other than that of a size: tensors in a trace, symbolic in a run without."""
    return any(isinstance(number, int) for number in _numbers_in(key))


def _numbers_in(key: Any) -> Iterator[Any]:
    """The whole numbers of a key, and the expressions of its symbolic ones, in their order."""
    if symbolic.is_symbolic(key):
        yield key.node.expr
    elif isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from _numbers_in(part)
    elif isinstance(key, Real) and float(key).is_integer():
        yield int(float(key))


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
        self._hashed: list[Any] = []
        self._looked_up: list[_LookUp] = []

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
        self._hashed = [*(self._hashed if instruction == self._instruction else ()), expression][-_LAST:]
        self._instruction = instruction
        own = set(map(id, frame.f_locals.values()))
        others = tuple(_fixed_sizes(frame))
        for container in containers:
            keys = (*container, *others, *(near if id(container) in own else ()))
            self._looked_up.append(_LookUp(container, keys, tuple(self._hashed), place))
        return True

    def conditions(self) -> Iterator[tuple[Any, str]]:
        """For each key that a size may be found as, the condition that it is, and the place.

        To be called once the model has run: the keys that it adds after it has looked a size up are met then.
        """
        for found in self._looked_up:
            for key in (*found.keys, *found.container):
                for condition in _matches(found.sizes, list(_numbers_in(key))):
                    yield condition, found.place


def _matches(hashed: Sequence[Any], numbers: Sequence[Any]) -> Iterator[Any]:
    """The conditions under which the last sizes that were hashed are these numbers, each in one order."""
    import sympy

    *earlier, last = hashed
    count = min(len(hashed), len(numbers))
    for sizes in itertools.combinations(earlier, max(count - 1, 0)) if count else ():
        for some in itertools.combinations(numbers, count):
            yield sympy.And(*(sympy.Eq(size, one) for size, one in zip((*sizes, last), some, strict=True)))
