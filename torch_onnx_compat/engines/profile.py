"""Makes an engine's profile from samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from torch_onnx_compat.engines import basics
from torch_onnx_compat.engines.condense import condense
from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.measure import Sample, run_probes
from torch_onnx_compat.engines.probe_contexts import Probe
from torch_onnx_compat.engines.process import EngineProcess
from torch_onnx_compat.engines.type_probes import condense_types, run_type_probes
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets.profile import known_targets, load_target
from torch_onnx_compat.targets.target import BETTER, PASSED, Row, Target


def measure(
    engine: Engine, probes: Iterable[Probe], date: str, progress: Callable[[str], None] = lambda _: None
) -> Target:
    """Measures an engine.

    Args:
        engine: The engine.
        probes: The probes to run in it.
        date: Date of the measurement, e.g. 2026-11-21.
        progress: Called with each probe's name.

    Raises:
        CompatError: The engine is not installed.
    """
    version, found = run_probes(engine, probes, progress)
    passed = {sample.name for sample in found if sample.verdict in PASSED}
    typed = run_type_probes(engine, lambda probe: probe.name in passed, progress)
    return profile(engine, version, found, date, typed)


def measure_operators(
    engine: Engine,
    probes: Iterable[Probe],
    operators: Collection[str],
    date: str,
    progress: Callable[[str], None] = lambda _: None,
) -> Target:
    """Measures some operators of an engine again; the rest of its shipped profile stays.

    Args:
        engine: The engine.
        probes: The probes; those of other operators are left out.
        operators: The operators.
        date: Date of the measurement.
        progress: Called with each probe's name.

    Raises:
        CompatError: The engine is not installed, or not in the version of the profile; no probe tries an operator.
    """
    shipped = load_target(engine.name)
    chosen = [probe for probe in probes if probe.op_type in operators]
    untried = sorted({*operators} - {probe.op_type for probe in chosen})
    if untried:
        raise CompatError(f"no probe tries {', '.join(untried)}; write some in engines/probes.toml.")
    version, found = run_probes(engine, chosen, progress)
    if version != shipped.version:
        raise CompatError(
            f"engine {engine.name!r} is {version} here, its profile of {shipped.version}: measure all operators."
        )
    works, rows = condense(found)
    kept = [row for row in shipped.rows if row.op_type not in operators or row.verdict in BETTER]
    better = {row.op_type for row in kept if row.verdict in BETTER}
    how, _, before = shipped.how.partition(f"; again on {date}: ")
    again = ", ".join(sorted({*operators, *filter(None, before.split(", "))}))
    return replace(
        shipped,
        rows=tuple(sorted((*rows, *kept), key=lambda row: row.op_type)),
        works=(shipped.works - {*operators}) | (works - better),
        how=f"{how}; again on {date}: {again}",
    )


def profile(engine: Engine, version: str, found: Sequence[Sample], date: str, typed: Sequence[Sample] = ()) -> Target:
    """Makes the profile from samples; opsets, IR versions and dynamic axes are tried here.

    Samples hold no times, and errors only beside a tolerance: the rows of the shipped profile with the verdicts slow
    and rough are kept.

    Args:
        engine: The engine.
        version: Its version.
        found: The samples that rows are made of.
        date: Date of the measurement.
        typed: The samples of operators in other element types.
    """
    works, rows = condense(found)
    better = _better(engine.name)
    silent = rows_without_samples(load_target(engine.name), version, found) if engine.name in known_targets() else []
    counts = Counter(sample.verdict for sample in found)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in sorted(counts))
    with EngineProcess(engine, limit=20.0) as process:
        opsets = basics.opsets(process)
        ir_version, dynamic = basics.ir_version(process, opsets[1]), basics.dynamic_support(process)
        folds = basics.folds(process)
    how = f"{len(found)} probes against onnxruntime: {summary}"
    if engine.builds:
        unread = sum(sample.verdict == "built" and bool(sample.reason) for sample in found)
        how = (
            f"{len(found)} probes parsed and built, never run; what was parsed, computed in float64, against "
            f"onnxruntime: {summary}; the parsed values of {unread} built ones are not known"
        )
    return Target(
        name=engine.name,
        version=version,
        opset=min(engine.opset, opsets[1]),
        opsets=opsets,
        rows=tuple(sorted((*rows, *better, *silent), key=lambda row: row.op_type)),
        measured=True,
        runs=not engine.builds,
        ir_version=ir_version,
        dynamic=dynamic,
        folds=folds,
        works=works - {row.op_type for row in better},
        types=condense_types(sample for sample in typed if not _is_said(sample, rows)),
        date=date,
        how=how,
        placement=load_target(engine.name).placement if engine.name in known_targets() else None,
    )


def rows_without_samples(shipped: Target, version: str, found: Iterable[Sample]) -> list[Row]:
    """The rows of an earlier measurement of this version, for operators of which the present samples tell nothing.

    What makes the inputs of a probe may be refused, where they were inputs of the file before.
    """
    told = {sample.op_type for sample in found}
    return [row for row in shipped.rows if row.op_type not in told and shipped.version == version]


def _is_said(sample: Sample, rows: Iterable[Row]) -> bool:
    """Whether a row says already that a sample fails."""
    return any(row.op_type == sample.op_type and row.matches(row.opset[0], sample.facts) for row in rows)


def _better(name: str) -> list[Row]:
    return [row for row in load_target(name).rows if row.verdict in BETTER] if name in known_targets() else []
