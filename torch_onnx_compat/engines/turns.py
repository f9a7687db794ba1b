"""Files that are timed in engines in turns, as a machine is not equally fast from one minute to the next."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.process import EngineProcess

LIMIT = 300.0
"""Seconds that one run of a file may take."""

ROUNDS = 5
"""How often each file has its turn."""

RUNS = 10
"""Runs in a turn."""


class Contestant:
    """A file in an engine's process of its own, and what was measured of it.

    Args:
        path: The file.
        engine: The engine.
        feeds: Inputs by name.
        threads: On how many threads the engine runs.
    """

    def __init__(
        self, path: str | os.PathLike[str], engine: Engine, feeds: Mapping[str, Any], threads: int = 1
    ) -> None:
        self.path, self.feeds, self.threads = Path(path), dict(feeds), threads
        self._process = EngineProcess(engine, LIMIT, fills=False, threads=threads)
        self.wall: list[float] = []
        """Seconds of each run by the clock."""
        self.seconds: list[float] = []
        """Seconds of each run of the processor."""
        self.loading, self.memory = 0.0, 0
        self.error = ""
        """Why the engine does not run the file; empty where it does."""

    @property
    def version(self) -> str:
        """Of the engine."""
        return self._process.version

    @property
    def median(self) -> float:
        """Seconds of the processor that a run takes."""
        return statistics.median(self.seconds)

    def load(self, stack: ExitStack, outputs: Sequence[str]) -> None:
        """Starts the engine, and runs the file once."""
        stack.enter_context(self._process)
        outcome = self._process.run(self.path, self.feeds, outputs)
        self.loading, self.error = outcome.loading, "" if outcome.status == "ran" else outcome.error

    def take_turn(self, runs: int) -> None:
        """Times some runs."""
        if not self.error:
            timing = self._process.measure(runs)
            self.wall += timing.wall
            self.seconds += timing.seconds
            self.memory = timing.memory


def take_turns(
    contestants: Sequence[Contestant],
    rounds: int = ROUNDS,
    runs: int = RUNS,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Times files that are loaded, round by round.

    Args:
        contestants: The files.
        rounds: How often each has its turn.
        runs: Runs in a turn.
        progress: Called with the name of each round.
    """
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for one in contestants:
            one.take_turn(runs)
