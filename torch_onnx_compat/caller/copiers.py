"""How copy.deepcopy copies classes of Python and numpy, while a twin is made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_DISPATCH: dict[type, Any] = copy._deepcopy_dispatch  # type: ignore[attr-defined]
"""What deepcopy calls, by class. It is Python's own: arrays have a ``__deepcopy__`` that nobody can set."""


class CopyAnew(Exception):
    """What was copied by itself belongs to something else of the model, as is known now; the copy has to begin anew."""


@contextmanager
def copying_by(copiers: Mapping[type, Callable[[Any, dict[int, Any]], Any]]) -> Iterator[None]:
    """While active, deepcopy calls these functions with the values of the classes, and with its memo."""
    before = {kind: _DISPATCH[kind] for kind in copiers if kind in _DISPATCH}
    _DISPATCH.update(copiers)
    try:
        yield
    finally:
        for kind in copiers:
            _DISPATCH.pop(kind, None)
        _DISPATCH.update(before)
