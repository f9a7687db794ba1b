"""run() and bench(): files in engines, and how long that takes.

Machines are noisy. So the files take turns, round by round, and of each run the processor's time stands beside the
wall clock's: the first leaves out what other programs did meanwhile. Engines run on one thread unless more are asked
for.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torch_onnx_compat.check.on_target import cast_output
from torch_onnx_compat.engines import ENGINES, EngineProcess, find_engine
from torch_onnx_compat.engines.turns import LIMIT, ROUNDS, RUNS, Contestant, take_turns
from torch_onnx_compat.errors import ArgumentError, CompatError
from torch_onnx_compat.files.drawing import plan_inputs
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import OnnxFile, read
from torch_onnx_compat.files.runner import Array, Value
from torch_onnx_compat.request import METADATA_PREFIX
from torch_onnx_compat.targets.profile import resolve_alias


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
        unsaid: The dynamic axes of which nobody said the size: neither the caller nor the file.
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
    unsaid: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return {**vars(self), "sizes": dict(self.sizes), "unsaid": list(self.unsaid)}


def row_of(one: Contestant, sizes: Mapping[str, int]) -> Bench:
    """What was measured of a file.

    Args:
        one: The file in its engine.
        sizes: Of the dynamic axes in its inputs.
    """
    found = Bench(str(one.path), f"{one.engine.name} {one.version}", dict(sizes), one.threads)
    if one.error:
        return replace(found, error=one.error)
    found = replace(found, load_ms=1e3 * one.first.loading, memory_mb=one.memory / 1e6)
    if one.first.status == "built":
        return replace(found, engine_mb=one.first.size / 1e6)
    rows = next((np.shape(value)[0] for value in one.feeds.values() if np.ndim(value)), 1)
    return replace(
        found,
        median_ms=1e3 * statistics.median(one.wall),
        p90_ms=1e3 * float(np.quantile(one.wall, 0.9)),
        processor_ms=1e3 * one.median,
        quartiles_ms=(1e3 * float(np.quantile(one.seconds, 0.25)), 1e3 * float(np.quantile(one.seconds, 0.75))),
        throughput=rows / one.median if one.median else float("nan"),
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
        sizes: Sizes of dynamic axes to time at, such as ``[{"batch": 1}, {"batch": 8}]``; of the others, those of the
            example that a file of this package was exported with.
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
    contestants: list[Contestant] = []
    about: list[tuple[Mapping[str, int], tuple[str, ...]]] = []
    for file in files:
        for wanted in _grid(file, sizes, batches):
            feeds, found, outputs = draw_inputs(file, wanted, inputs, seed)
            contestants += [Contestant(file, find_engine(name), feeds, outputs, threads=threads) for name in names]
            said = {*wanted, *example_sizes(read(file)), *(found if inputs else ())}
            about += [(found, tuple(name for name in found if name not in said))] * len(names)
    take_turns(contestants, rounds, runs, progress)
    return [replace(row_of(one, found), unsaid=unsaid) for one, (found, unsaid) in zip(contestants, about, strict=True)]


def check_numbers(rounds: int, runs: int, threads: int) -> None:
    """Says before any work that a number makes no sense.

    Raises:
        CompatError: It is not positive.
    """
    if rounds < 1 or runs < 1 or threads < 1:
        raise ArgumentError(f"bench: rounds={rounds}, runs={runs}, threads={threads}; wanted whole numbers from 1.")


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
        sizes: Sizes of dynamic axes for random inputs; by default those of the example that the file was exported
            with, where it tells them.
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
    found = read(file)
    fixed = {name: (size,) for name, size in {**example_sizes(found), **sizes}.items()}
    with Proof(found, [] if inputs is None else [inputs], fixed, seed) as proof:
        case = proof.first_case()
        return dict(case.feeds), dict(case.sizes), proof.names


def example_sizes(file: OnnxFile) -> dict[str, int]:
    """The sizes of a file's dynamic axes in the example that it was exported with; none for a file of another tool."""
    metadata = {entry.key: entry.value for entry in file.proto.metadata_props}
    sizes = json.loads(metadata.get(f"{METADATA_PREFIX}sizes", "{}"))
    axes = {dim.dim_param for value in file.proto.graph.input for dim in value.type.tensor_type.shape.dim}
    return {name: size for name, size in sizes.items() if name in axes}


def installed() -> list[str]:
    """The engines that are installed here."""
    return [name for name, engine in ENGINES.items() if engine.interpreter() is not None]
