"""run() and bench(): files in engines, and how long that takes.

Machines are noisy. So the files take turns, round by round, and of each run the processor's time stands beside the
wall clock's: the first leaves out what other programs did meanwhile. Engines run on one thread unless more are asked
for.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from torch_onnx_compat.check.on_target import LIMIT, cast_output
from torch_onnx_compat.engines import ENGINES, EngineProcess, Outcome, find_engine
from torch_onnx_compat.engines.ranges import Ranges
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.files.drawing import plan_inputs
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Array, Value
from torch_onnx_compat.targets.profile import resolve_alias

ROUNDS = 5
"""How often each file has its turn."""

RUNS = 10
"""Runs in a turn."""


@dataclass(frozen=True)
class Bench:
    """How long one file takes in one engine.

    Attributes:
        file: The file.
        engine: The engine, with its version.
        sizes: Of the dynamic axes.
        threads: On how many threads the engine ran.
        median_ms: Median of the runs, in milliseconds of the wall clock.
        p90_ms: What nine of ten runs stay below.
        processor_ms: Median of the runs, in milliseconds of the processor.
        quartiles_ms: Between which the middle half of the runs lies, in milliseconds of the processor.
        load_ms: Milliseconds of the processor that loading took; of an engine that only builds files here, building.
        memory_mb: What the engine's process has held at most, in megabytes, the engine itself included.
        throughput: Rows for each second of the processor: axis 0 of the first input, by the median.
        engine_mb: Megabytes of what was built, by an engine that only builds files here; it has no times.
        error: Why there are no numbers, where the engine refuses the file.
    """

    file: str
    engine: str
    sizes: Mapping[str, int]
    threads: int = 1
    median_ms: float = float("nan")
    p90_ms: float = float("nan")
    processor_ms: float = float("nan")
    quartiles_ms: tuple[float, float] = (float("nan"), float("nan"))
    load_ms: float = float("nan")
    memory_mb: float = float("nan")
    throughput: float = float("nan")
    engine_mb: float = float("nan")
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**vars(self), "sizes": dict(self.sizes)}


class Contestant:
    """A file in an engine's process of its own.

    Args:
        path: The file.
        engine: The engine's name.
        feeds: The inputs.
        outputs: The names of its outputs.
        sizes: The sizes of its dynamic axes in the inputs, for the result.
        threads: On how many threads the engine runs.
        ranges: The shapes that an engine which builds files builds it for; by default those of the inputs.
    """

    def __init__(
        self,
        path: Path,
        engine: str,
        feeds: Mapping[str, Value],
        outputs: Sequence[str],
        *,
        sizes: Mapping[str, int] | None = None,
        threads: int = 1,
        ranges: Ranges | None = None,
    ) -> None:
        self._path, self._engine, self._feeds, self._outputs = path, engine, dict(feeds), list(outputs)
        self._sizes, self._threads, self._ranges = dict(sizes or {}), threads, ranges
        self._process = EngineProcess(find_engine(engine), LIMIT, fills=False, threads=threads)
        self._wall: list[float] = []
        self._seconds: list[float] = []
        self._first = Outcome("crashed")
        self._memory = 0

    def __str__(self) -> str:
        return f"{self._path} in {self._engine}"

    def load(self, stack: ExitStack) -> None:
        """Starts the engine, and runs the file once, or builds it."""
        stack.enter_context(self._process)
        self._first = self._process.run(self._path, self._feeds, self._outputs, self._ranges)
        self._memory = self._first.memory

    def take_turn(self, runs: int) -> None:
        """Times some runs."""
        if self._first.status == "ran":
            timing = self._process.measure(runs)
            self._wall += timing.wall
            self._seconds += timing.seconds
            self._memory = timing.memory

    def result(self) -> Bench:
        """What was measured."""
        found = Bench(str(self._path), f"{self._engine} {self._process.version}", self._sizes, self._threads)
        if self._first.status not in ("ran", "built"):
            return replace(found, error=self._first.error)
        found = replace(found, load_ms=1e3 * self._first.loading, memory_mb=self._memory / 1e6)
        if self._first.status == "built":
            return replace(found, engine_mb=self._first.size / 1e6)
        processor = statistics.median(self._seconds)
        rows = next((np.shape(value)[0] for value in self._feeds.values() if np.ndim(value)), 1)
        return replace(
            found,
            median_ms=1e3 * statistics.median(self._wall),
            p90_ms=1e3 * float(np.quantile(self._wall, 0.9)),
            processor_ms=1e3 * processor,
            quartiles_ms=(1e3 * float(np.quantile(self._seconds, 0.25)), 1e3 * float(np.quantile(self._seconds, 0.75))),
            throughput=rows / processor if processor else float("nan"),
        )


def bench(
    files: Sequence[str | os.PathLike[str]],
    *,
    engines: Sequence[str] = ("onnxruntime",),
    sizes: Sequence[Mapping[str, int]] = ({},),
    batches: Sequence[int] = (),
    threads: int = 1,
    inputs: Mapping[str, Any] | None = None,
    rounds: int = ROUNDS,
    runs: int = RUNS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Bench]:
    """Times files in engines, in turns.

    Args:
        files: The files.
        engines: The engines; each is to be installed.
        sizes: Sizes of dynamic axes to time at, such as ``[{"batch": 1}, {"batch": 8}]``.
        batches: Sizes of axis 0 of every input to time at, at each of the `sizes`.
        threads: On how many threads the engines run.
        inputs: Inputs by name; random ones by default.
        rounds: How often each file has its turn.
        runs: Runs in a turn.
        seed: Of the random inputs.
        progress: Called with the name of each step.

    Returns:
        A row for each file, engine and sizes.

    Raises:
        CompatError: A file is broken or does not run in onnxruntime, axis 0 of a file is fixed where `batches` are
            given, or an engine is not installed or does not let its threads be set.
    """
    check_numbers(rounds, runs, threads)
    names = _names_of(engines, threads)
    contestants = []
    for file in files:
        for wanted in _grid(file, sizes, batches):
            feeds, found, outputs = draw_inputs(file, wanted, inputs, seed)
            contestants += [Contestant(Path(file), e, feeds, outputs, sizes=found, threads=threads) for e in names]
    return take_turns(contestants, rounds, runs, progress)


def check_numbers(rounds: int, runs: int, threads: int) -> None:
    """Says before any work that a number makes no sense.

    Raises:
        CompatError: It is not positive.
    """
    if rounds < 1 or runs < 1 or threads < 1:
        raise CompatError(f"bench: rounds={rounds}, runs={runs}, threads={threads}; wanted whole numbers from 1.")


def take_turns(
    contestants: Sequence[Contestant], rounds: int, runs: int, progress: Callable[[str], None]
) -> list[Bench]:
    """Times files in engines, round by round.

    Args:
        contestants: The files in their engines.
        rounds: How often each has its turn.
        runs: Runs in a turn.
        progress: Called with the name of each step.
    """
    with ExitStack() as stack:
        for one in contestants:
            progress(f"load {one}")
            one.load(stack)
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for one in contestants:
                one.take_turn(runs)
        return [one.result() for one in contestants]


def _names_of(engines: Sequence[str], threads: int) -> list[str]:
    names = [resolve_alias(name) for name in engines]
    for name in names:
        if threads > 1 and not find_engine(name).sets_threads:
            raise CompatError(f"bench: threads={threads}, but nothing sets the threads of {name!r} here; leave it out.")
    return names


def _grid(
    file: str | os.PathLike[str], sizes: Sequence[Mapping[str, int]], batches: Sequence[int]
) -> list[dict[str, int]]:
    """The sizes at which a file is timed."""
    if not batches:
        return [dict(one) for one in sizes]
    model = read(file).graph()
    names = plan_inputs(model).first
    if not names and set(batches) == {value.shape[0] if value.shape else None for value in model.graph.inputs}:
        return [dict(one) for one in sizes]  # the only batch that it takes
    if not names:
        raise CompatError(
            f"{os.fspath(file)}: axis 0 of its inputs is fixed, so it cannot be timed in batches of {list(batches)}; "
            f"free it: torch-onnx-compat convert --dynamic batch."
        )
    return [{**one, **dict.fromkeys(names, batch)} for one in sizes for batch in batches]


def run(
    file: str | os.PathLike[str],
    *,
    engine: str = "onnxruntime",
    inputs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> tuple[dict[str, Value], dict[str, Array]]:
    """Runs a file once.

    Args:
        file: The file.
        engine: Where it is run.
        inputs: Inputs by name; random ones by default.
        sizes: Sizes of dynamic axes for random inputs.
        seed: Of the random inputs.

    Returns:
        The inputs and the outputs, by name.

    Raises:
        CompatError: The file is broken, or the engine is not installed or refuses the file.
    """
    name = resolve_alias(engine)
    found = find_engine(name)
    feeds, _, outputs = draw_inputs(file, sizes or {}, inputs, seed)
    with EngineProcess(found, LIMIT) as process:
        outcome = process.run(file, feeds, outputs)
    if outcome.status != "ran":
        raise CompatError(
            f"{file}: {name} {'refuses' if outcome.status == 'refused' else 'crashes on'} it: {outcome.error}"
        )
    declared = read(file).proto.graph.output
    return feeds, {
        value.name: cast_output(array, value) for value, array in zip(declared, outcome.outputs, strict=True)
    }


def draw_inputs(
    file: str | os.PathLike[str], sizes: Mapping[str, int], inputs: Mapping[str, Any] | None, seed: int
) -> tuple[dict[str, Value], dict[str, int], list[str]]:
    """Inputs that a file takes, the sizes of its dynamic axes in them, and the names of its outputs.

    Raises:
        CompatError: The file is broken, or refuses the inputs.
    """
    fixed = {name: (size,) for name, size in sizes.items()}
    with Proof(read(file), [] if inputs is None else [inputs], fixed, seed) as proof:
        case = proof.first_case()
        return dict(case.feeds), dict(case.sizes), proof.names


def installed() -> list[str]:
    """The engines that are installed here."""
    return [name for name, engine in ENGINES.items() if engine.interpreter() is not None]
