"""The whole numbers that code names: constants, texts, keys of dictionaries, attributes.

Python may look a size up in a dictionary, or compare its text, and nobody sees with what. The numbers that stand around
such a place are the sizes that may matter there.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

LIMIT = 12
"""Numbers of one place at most."""

DEPTH = 3
"""Levels of nested containers that are looked into."""


def numbers_near(frame: types.FrameType | None) -> tuple[int, ...]:
    """The numbers that a function's code names, itself or by what it reads.

    Args:
        frame: A call of the function.
    """
    if frame is None:
        return ()
    found: dict[int, None] = {}
    for value in _values(frame):
        found.update(dict.fromkeys(_numbers_in(value, DEPTH)))
    return tuple(number for number in found if number > 0)[:LIMIT]


def _values(frame: types.FrameType) -> Iterator[Any]:
    code = frame.f_code
    yield from code.co_consts
    names = {*code.co_names, *code.co_freevars}
    owner = frame.f_locals.get("self")
    for scope in (frame.f_locals, frame.f_globals, getattr(owner, "__dict__", {}), vars(type(owner))):
        for name in names:
            if name in scope and isinstance(scope[name], (int, str, tuple, list, set, frozenset, dict)):
                yield scope[name]


def _numbers_in(value: Any, depth: int) -> Iterator[int]:
    if type(value) is int:
        yield value
    elif type(value) is float and value.is_integer():
        yield int(value)
    elif type(value) is str:
        yield from (int(digits) for digits in re.findall(r"\d{1,6}", value))
    elif isinstance(value, Mapping) and depth:
        for key in list(value)[:LIMIT]:
            yield from _numbers_in(key, depth - 1)
    elif isinstance(value, (tuple, list, set, frozenset)) and depth:
        for item in list(value)[:LIMIT]:
            yield from _numbers_in(item, depth - 1)
