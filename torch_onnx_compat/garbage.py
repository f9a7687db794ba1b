"""Python's cyclic garbage collector, kept from walking through all that torch has made."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pauses the collector if it is on.

    A graph is thousands of new objects that all stay alive. They trigger collections that walk through everything that
    torch keeps, which takes longer than all the work on the graph.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def collect_new_only() -> Iterator[None]:
    """While active, the collector leaves alone what has lived long.

    An export makes so many objects that the collector walks through all of them more than once, a million of torch's
    own among them: a quarter of a second each time. They are not frozen: that would count the garbage of one export
    among what has lived long before the next one, and the collector does not come back for it.
    """
    before = gc.get_threshold()
    gc.set_threshold(before[0], before[1], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_NEVER = 2**31 - 1
"""Collections of younger objects after which the collector looks at the oldest ones: more than there can be."""


def referrers(objects: Sequence[Any]) -> list[Any]:
    """What the collector knows to refer to some objects, what it leaves alone included; it leaves that alone then."""
    if not gc.get_freeze_count():
        return gc.get_referrers(*objects)
    gc.unfreeze()
    try:
        return gc.get_referrers(*objects)
    finally:
        gc.freeze()
