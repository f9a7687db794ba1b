"""Runs files in engines, on the cases of a proof."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_onnx_compat.check.compare import NOISE_FACTOR, NOISE_LIMIT, Comparison, compare, relative_distance
from torch_onnx_compat.check.on_target import (
    NARROW_LIMIT,
    cast_output,
    judge_by_narrow_run,
    judge_by_size,
    tolerance_of,
)
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess, Outcome
from torch_onnx_compat.engines.compare import first_run_fault
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.files.cases import FileCase
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.runner import Array, Refused, Value
from torch_onnx_compat.files.values import is_plain
from torch_onnx_compat.targets import Target

_DRAWS = 3
"""Runs of the original with other roundings, of which the one that moves farthest counts."""

_REPEATS, _PATIENCE = 8, 1.0
"""How often a file that was right on every case is run again at most, and for how many seconds."""


class EngineFault(VerificationError):
    """An engine refuses a file that is right in onnxruntime, crashes on it, or computes something else.

    Attributes:
        engine: Its name.
    """

    def __init__(self, message: str, table: tuple[Comparison, ...], engine: str) -> None:
        super().__init__(message, table)
        self.engine = engine


def is_installed(target: Target) -> bool:
    """Whether a target's engine, other than onnxruntime, runs files here."""
    engine = ENGINES.get(target.name)
    if engine is None or engine.builds or target.name == "onnxruntime":
        return False
    return engine.interpreter() is not None


def verify_in_engine(path: Path, proof: Proof, target: Target, *, within: float = 0.0) -> tuple[Comparison, ...]:
    """Compares a file in its target's engine with the original on every case; none where that is not installed.

    Args:
        path: The file.
        proof: The original, and the cases; gets a note on what was not run.
        target: The engine.
        within: Of a file in a narrower format, how far an output may be from onnxruntime's of the same file, relative
            to its size.

    Raises:
        EngineFault: The engine refuses the file, crashes, or a value is off; holds the table so far.
    """
    engine = ENGINES.get(target.name)
    if target.name == "onnxruntime":
        return ()
    if engine is None or engine.interpreter() is None:
        why = "there is no adapter for it" if engine is None else "it is not installed"
        proof.notes.append(f"not run on {target.name}: {why}.")
        return ()
    table: list[Comparison] = []
    process = proof.runner.engine(engine)
    for case, found, rows in compare_in_engine(path, proof, engine, process):
        if within and all(row.output for row in rows):
            wanted = dict(zip(proof.names, _values_of_file(path, proof, case), strict=True))
            rows = [judge_by_size(row, found[row.output], wanted[row.output], within) for row in rows]
        table += rows
        _raise_fault(rows, table, case, target.name)
    if not within:
        process.restart()  # what earlier files left in memory may have been right
        for case, _, rows in compare_in_engine(path, proof, engine, process, _once_more(proof.cases)):
            _raise_fault(rows, [*table, *rows], case, f"{target.name}, which was right once,")
    return tuple(table)


def _once_more(cases: Sequence[FileCase]) -> Iterator[FileCase]:
    """Cases to run again: an engine that reads memory which nobody wrote is right now and then.

    The first is given, or has the sizes of most others; more of them follow while that costs little.
    """
    start = time.monotonic()
    for number in range(_REPEATS):
        if number and time.monotonic() - start > _PATIENCE:
            return
        yield cases[number % len(cases)]


def _raise_fault(rows: Sequence[Comparison], table: Sequence[Comparison], case: FileCase, name: str) -> None:
    bad = next((row for row in rows if not row.ok), None)
    if bad is None:
        return
    what = f"computes something else than the original, case {case.label!r}, output {bad.output!r}"
    what = what if bad.output else f"does not run the new file, case {case.label!r}"
    raise EngineFault(f"{name} {what}: {bad.detail}", tuple(table), name.partition(",")[0])


def _values_of_file(path: Path, proof: Proof, case: FileCase) -> Sequence[Array]:
    """What onnxruntime makes of a file; the original's outputs where it has no kernels for it."""
    try:
        return proof.run_file(path, case.feeds)
    except Refused:  # as of bfloat16; whoever made the file noted it
        return case.outputs


def compare_in_engine(
    path: Path, proof: Proof, engine: Engine, process: EngineProcess, cases: Iterable[FileCase] | None = None
) -> Iterator[tuple[FileCase, dict[str, Array], list[Comparison]]]:
    """Compares a file in an engine with the original, case by case.

    Args:
        path: The file.
        proof: The original, and the cases; gets a note on each case that says nothing about an engine.
        engine: The engine.
        process: Runs it.
        cases: The cases; by default those of the proof.

    Yields:
        The case, what the engine gives, and a row for each output; one row without an output's name where the engine
        does not run the file.
    """
    declared = [proof.declared[name] for name in proof.names]
    for case in proof.cases if cases is None else cases:
        reason = _obstacle(case)
        if reason:
            proof.notes.append(f"case {case.label!r} was not run on {engine.name}: {reason}.")
            continue
        label = f"{case.label} on {engine.name} {process.version}"
        outcome = process.run(path, dict(case.feeds), proof.names)
        fault = outcome.error if outcome.status != "ran" else _first_run_fault(outcome, proof, engine)
        if outcome.status != "ran" or fault:
            process.restart()  # what a failure left behind is not the next file's
            nan = float("nan")
            yield case, {}, [Comparison(label, "", nan, nan, "", False, f"fails: {fault}")]
            continue
        cast = [cast_output(array, value) for array, value in zip(outcome.outputs, declared, strict=True)]
        found = [_in_shape(array, value) for array, value in zip(cast, case.outputs, strict=True)]
        rows = _compare(label, found, case, proof, engine)
        if not all(row.ok for row in rows) and (why := _why_chaotic(found, case, proof, engine)):
            proof.notes.append(
                f"case {case.label!r} says nothing about {engine.name}: the original's own values {why}."
            )
            continue
        yield case, dict(zip(proof.names, found, strict=True)), rows


def _first_run_fault(outcome: Outcome, proof: Proof, engine: Engine) -> str:
    """How the first run differs from the next one, in outputs that the original computes alike in every run."""
    alike = [name not in proof.random_outputs for name in proof.names]
    outputs, first = (tuple(compress(run, alike)) for run in (outcome.outputs, outcome.first))
    return first_run_fault(replace(outcome, outputs=outputs, first=first), tolerance_of(engine))


def _in_shape(found: Array, wanted: Value) -> Array:
    """An output of an engine that has no scalars, or gives no shape of what is empty, in the shape that is meant."""
    is_meant = (found.shape == (1,) and wanted.shape == ()) or (found.shape == (0,) and wanted.size == 0)
    return found.reshape(wanted.shape) if is_meant else found


def _obstacle(case: FileCase) -> str:
    """Why a case says nothing about an engine; empty if it does."""
    values: list[Any] = [*case.feeds.values(), *case.outputs]
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and is_plain(value) for value in values):
        return "not all values are plain tensors"
    is_finite = all(np.isfinite(value).all() for value in case.outputs if value.dtype.kind == "f")
    if not is_finite and not case.is_given:
        return "the original's outputs are not all finite"
    return ""


def _why_chaotic(found: Sequence[Any], case: FileCase, proof: Proof, engine: Engine) -> str:
    """What the original's own rounding does to its values, where that is too much to judge an engine by; else nothing.

    An engine that is off by much more than that is wrong all the same.
    """
    is_float32, overflows = engine.computes_in == "float32", False
    draws = [proof.run_otherwise(case, engine.computes_in) for _ in range(_DRAWS if is_float32 else 1)]
    limit, most = NOISE_LIMIT if is_float32 else NARROW_LIMIT / NOISE_FACTOR, 0.0
    for array, exact, *runs in zip(found, case.outputs, *filter(None, draws), strict=True):
        if exact.dtype.kind != "f" or array.shape != exact.shape:
            return ""
        if not is_float32 and not np.isfinite(array).all() and not all(np.isfinite(run).all() for run in runs):
            overflows = True  # both leave the range; an engine that gives numbers there is held to them
            continue
        distance = relative_distance([(array, exact)])
        moved = max((relative_distance([(rounded, exact)]) for rounded in runs), default=0.0)
        if not np.isfinite(moved) or distance > NOISE_FACTOR * max(moved, limit):
            return ""
        most = max(most, moved)
    if overflows:
        return f"leave the range of {engine.computes_in}"
    return f"move by {most:.0%} where its operations round otherwise" if most > limit else ""


def _compare(label: str, found: list[Any], case: FileCase, proof: Proof, engine: Engine) -> list[Comparison]:
    rtol, atol = tolerance_of(engine)
    rows = [
        compare(label, name, array, torch.from_numpy(np.array(wanted)), rtol, atol)
        for name, array, wanted in zip(proof.names, found, case.outputs, strict=True)
        if name not in proof.random_outputs
    ]
    if all(row.ok for row in rows):
        return rows
    if engine.computes_in != "float32":
        return _judge_by_narrow_type(rows, found, case, proof, engine.computes_in)
    others = {row.output: row for row in proof.compare_outputs(case, found)}  # rounding excuses the same as elsewhere
    return [row if row.ok else replace(others[row.output], case=label) for row in rows]


def _judge_by_narrow_type(
    rows: list[Comparison], found: list[Any], case: FileCase, proof: Proof, computes_in: str
) -> list[Comparison]:
    """Judges the failed rows by how far the original is off where it is rounded as the engine rounds."""
    narrow = proof.run_otherwise(case, computes_in)
    if narrow is None or len(rows) < len(proof.names):
        return rows
    own, exact = ([torch.from_numpy(np.array(value)) for value in values] for values in (narrow, case.outputs))
    judged = judge_by_narrow_run(rows, found, own, exact, computes_in)
    return [replace(row, detail=row.detail.replace("eager's", "the original's")) for row in judged]
