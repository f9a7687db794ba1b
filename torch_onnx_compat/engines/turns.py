"""Files that are timed in engines in turns, as a machine is not equally fast from one minute to the next."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.process import EngineProcess, Outcome
from torch_onnx_compat.engines.ranges import Ranges

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
        outputs: The names of its outputs.
        threads: On how many threads the engine runs.
        ranges: The shapes that an engine which builds files builds it for; by default those of the inputs.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        engine: Engine,
        feeds: Mapping[str, Any],
        outputs: Sequence[str],
        *,
        threads: int = 1,
        ranges: Ranges | None = None,
    ) -> None:
        self.path, self.engine, self.feeds, self.threads = Path(path), engine, dict(feeds), threads
        self._outputs, self._ranges = list(outputs), ranges
        self._process = EngineProcess(engine, LIMIT, fills=False, threads=threads)
        self.wall: list[float] = []
        """Seconds of each run by the clock."""
        self.seconds: list[float] = []
        """Seconds of each run of the processor."""
        self.first = Outcome("crashed")
        """Of the first run, or of building."""
        self.memory = 0
        """Bytes that the engine's process has held at most."""

    @property
    def version(self) -> str:
        """Of the engine."""
        return self._process.version

    @property
    def error(self) -> str:
        """Why the engine does not take the file; empty where it does."""
        return "" if self.first.status in ("ran", "built") else self.first.error or self.first.status

    @property
    def median(self) -> float:
        """Seconds of the processor that a run takes."""
        return statistics.median(self.seconds)

    def load(self, stack: ExitStack) -> None:
        """Starts the engine, and runs the file once, or builds it."""
        stack.enter_context(self._process)
        self.first = self._process.run(self.path, self.feeds, self._outputs, self._ranges)
        self.memory = self.first.memory

    def take_turn(self, runs: int) -> None:
        """Times some runs, where the engine runs the file."""
        if self.first.status == "ran":
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
    """Loads files into their engines and times them, round by round.

    Args:
        contestants: The files; each holds afterwards what was measured of it.
        rounds: How often each has its turn.
        runs: Runs in a turn.
        progress: Called with the name of each step.
    """
    with ExitStack() as stack:
        for one in contestants:
            progress(f"load {one.path} in {one.engine.name}")
            one.load(stack)
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for one in contestants:
                one.take_turn(runs)
