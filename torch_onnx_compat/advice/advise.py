"""advise(): exports a model in several forms, times each in the target's engine, and recommends one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from torch_onnx_compat.advice.advice import Advice, Trial, choose, notes_on, winners
from torch_onnx_compat.advice.forms import KINDS, Form, Kind, forms_for
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.engines.turns import ROUNDS, RUNS, Contestant, take_turns
from torch_onnx_compat.errors import CompatError, VerificationError, unknown_name
from torch_onnx_compat.export import export_compat
from torch_onnx_compat.files.bench import Bench, check_numbers, row_of
from torch_onnx_compat.precision.verdict import Precision
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.targets import Target, load_target


def advise(
    model: Any,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: str | os.PathLike[str] | Target = "onnxruntime",
    dynamic: str | Mapping[str, Any] | None = None,
    calibration: Iterable[Any] | None = None,
    vary: Collection[Kind] = KINDS,
    verify: Verify | None = None,
    threads: int = 1,
    rounds: int = ROUNDS,
    runs: int = RUNS,
    progress: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Advice:
    """Exports a model in several forms, and measures each in the target's engine.

    The usual form is what export_compat makes of the same keywords. The others differ from it in one way each; where
    another opset and another precision are both better, the two together are measured as well. Every file is proven
    against the model, in the engine too, where that is installed.

    Args:
        model: As for export_compat.
        args: As for export_compat.
        kwargs: As for export_compat.
        target: As for export_compat. Files are timed where its engine is installed. Of an engine that only builds files
            here, the time of the build and the size of what was built are measured.
        dynamic: As for export_compat: the axes that the file is to have.
        calibration: Inputs to find the ranges of eight bits with, as for Int8; without them that form is left out.
        vary: In which ways the forms differ: ``"axes"`` (fixed beside dynamic), ``"opset"`` (the lowest and the highest
            that the engine takes), ``"precision"``, ``"nms"`` (of detectors whose head is known).
        verify: As for export_compat.
        threads: On how many threads the engine runs.
        rounds: How often each file has its turn.
        runs: Runs in a turn.
        progress: Called with the name of each step.
        **options: Further keywords of export_compat.

    Returns:
        The forms beside each other, and the one that is recommended.

    Raises:
        CompatError: No form works, or a keyword is wrong.
    """
    check_numbers(rounds, runs, threads)
    for kind in vary:
        if kind not in KINDS:
            raise unknown_name("kind of form", kind, KINDS)
    resolved = load_target(target)
    usual = {"target": target, "dynamic": dynamic, **options}
    engine = ENGINES.get(resolved.name)
    if engine is not None and engine.interpreter() is None:
        engine = None
    forms = list(forms_for(model, resolved, usual, None if calibration is None else list(calibration), vary))
    with tempfile.TemporaryDirectory() as folder:
        maker = _Maker(model, args, kwargs, usual, verify or Verify(), Path(folder), progress)

        def time(trials: Sequence[Trial]) -> list[Trial]:
            return list(trials) if engine is None else maker.time(trials, engine, threads, rounds, runs)

        trials = time([maker.export(form, is_run=engine is not None) for form in forms])
        better = winners(trials)
        if len(better) > 1:
            pair = maker.export(better[0].form.with_form(better[1].form), is_run=engine is not None)
            again = time([trials[0], *better, pair])  # side by side, since timings of another hour are no measure
            names = {trial.form.name for trial in again}
            others = [trial for trial in trials if trial.form.name not in names]
            trials = [again[0], *others, *again[1:]]
    if all(trial.why for trial in trials):
        raise CompatError(f"advise: no form works on {resolved.name}. As usual: {trials[0].why}")
    best = choose(trials)
    notes = notes_on(trials, best)
    if engine is None:
        known = resolved.name in ENGINES
        how = f"torch-onnx-compat measure {resolved.name} --install" if known else "there is no adapter for it"
        notes.insert(0, f"{resolved.name} is not installed here: {how}.")
    return Advice(resolved.name, tuple(trials), best, {**usual, **best.form.options}, tuple(notes))


class _Maker:
    """Exports forms of one model into a folder, and times the files."""

    def __init__(
        self,
        model: Any,
        args: Any,
        kwargs: Mapping[str, Any] | None,
        usual: Mapping[str, Any],
        verify: Verify,
        folder: Path,
        progress: Callable[[str], None],
    ) -> None:
        self._model, self._args, self._kwargs = model, args, dict(kwargs or {})
        self._usual, self._verify = usual, verify
        self._folder, self._progress = folder, progress
        self._made: dict[str, ExportResult] = {}

    def export(self, form: Form, *, is_run: bool) -> Trial:
        """Makes and proves a file.

        Args:
            form: Its form.
            is_run: Whether the target's engine runs it for the proof, too.
        """
        self._progress(f"export: {form.name}")
        path = self._folder / form.name / "model.onnx"
        path.parent.mkdir(exist_ok=True)
        options = {**self._usual, **form.options, "verify": replace(self._verify, on_target=is_run)}
        try:
            made = export_compat(self._model, self._args, path, kwargs=self._kwargs, **options)
        except VerificationError as error:
            why = " ".join(str(error).split())
            return Trial(form, why=f"{self._right_elsewhere(path, options) if is_run else ''}{why}")
        except CompatError as error:
            return Trial(form, why=" ".join(str(error).split()))
        if made.precision is not None and not made.precision.narrow:
            return Trial(form, why="nothing in it would be narrower.")
        self._made[form.name] = made
        size = sum(file.stat().st_size for file in path.parent.iterdir())  # weights may lie beside the file
        return Trial(form, made.opset, made.nodes.total(), size, _off_by(made))

    def _right_elsewhere(self, path: Path, options: Mapping[str, Any]) -> str:
        """Says that the file is right, and the engine does not run it; nothing where no file is right."""
        try:
            export_compat(self._model, self._args, path, kwargs=self._kwargs, **{**options, "verify": self._verify})
        except CompatError:
            return ""
        return "a right file is made, and the engine here does not run it: "

    def time(self, trials: Sequence[Trial], engine: Engine, threads: int, rounds: int, runs: int) -> list[Trial]:
        """The trials with timings of those whose files were made."""
        working = [trial for trial in trials if not trial.why]
        files = [self._contestant(self._made[trial.form.name], engine, threads) for trial in working]
        take_turns(files, rounds, runs, self._progress)
        rows = iter([row_of(one, {}) for one in files])
        return [trial if trial.why else _with_timing(trial, next(rows)) for trial in trials]

    def _contestant(self, made: ExportResult, engine: Engine, threads: int) -> Contestant:
        assert made.path is not None
        args = self._args if isinstance(self._args, (tuple, list)) else (self._args,)
        feeds = made.feeds(*args, **self._kwargs)
        names = [value.name for value in made.model_proto.graph.output]
        ranges = {name: [list(r.least), list(r.usual), list(r.most)] for name, r in made.shapes.items()}
        return Contestant(made.path, engine, feeds, names, threads=threads, ranges=ranges)


def _with_timing(trial: Trial, row: Bench) -> Trial:
    why = f"{row.engine}: {row.error}" if row.error else ""
    return replace(trial, timing=row, why=why)


def _off_by(made: ExportResult) -> float:
    """How far the outputs of a narrower file are off; NaN for another."""
    if isinstance(made.precision, Precision):
        return made.precision.worst.rendering.worst if made.precision.worst is not None else nan
    return nan if made.precision is None else made.precision.distance
