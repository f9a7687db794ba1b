"""Pauses Python's cyclic garbage collector while a graph is read, changed or written."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
