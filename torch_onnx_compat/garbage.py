"""Python's cyclic garbage collector, kept from walking through all that torch has made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
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
    """While active, the collector leaves alone what there was before, unless the caller has asked for that already.

    An export makes so many objects that the collector walks through all of them more than once, a million of torch's
    own among them: a quarter of a second each time.
    """
    if gc.get_freeze_count():  # by the caller, or by the export around this one
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def all_objects() -> list[Any]:
    """The objects that the collector knows, those that it leaves alone included; it leaves all of them alone then."""
    if not gc.get_freeze_count():
        return gc.get_objects()
    gc.unfreeze()
    try:
        return gc.get_objects()
    finally:
        gc.freeze()
