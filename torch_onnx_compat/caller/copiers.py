"""How copy.deepcopy copies classes of Python and numpy, while a twin is made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

_DISPATCH: dict[type, Any] = copy._deepcopy_dispatch  # type: ignore[attr-defined]
"""What deepcopy calls, by class. It is Python's own: arrays have a ``__deepcopy__`` that nobody can set."""


class CopyAnew(Exception):
    """What was copied by itself belongs to something else of the model, as is known now; the copy has to begin anew."""


def copying_by(copiers: Mapping[type, Callable[[Any, dict[int, Any]], Any]]) -> AbstractContextManager[None]:
    """While active, deepcopy calls these functions with the values of the classes, and with its memo."""
    return with_items(_DISPATCH, copiers)


@contextmanager
def with_items(table: dict[Any, Any], items: Mapping[Any, Any]) -> Iterator[None]:
    """While active, a table holds these items, too, or in place of its own."""
    before = {key: table[key] for key in items if key in table}
    table.update(items)
    try:
        yield
    finally:
        for key in items:
            table.pop(key, None)
        table.update(before)
