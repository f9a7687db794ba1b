"""Times the steps of an export, and tells the caller which one begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Times the steps, and tells the caller which one begins."""

    progress: Callable[[str], None] | None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Counts the time spent inside as the step's, on top of what it had."""
        if self.progress is not None:
            self.progress(step)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
