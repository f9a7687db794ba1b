"""Makes an engine's profile from samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from torch_onnx_compat.engines import basics
from torch_onnx_compat.engines.condense import condense
from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.measure import Sample, run_probes
from torch_onnx_compat.engines.probe_contexts import Probe
from torch_onnx_compat.engines.process import EngineProcess
from torch_onnx_compat.engines.type_probes import condense_types, run_type_probes
from torch_onnx_compat.targets.profile import known_targets, load_target
from torch_onnx_compat.targets.target import PASSED, Row, Target


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


def profile(engine: Engine, version: str, found: Sequence[Sample], date: str, typed: Sequence[Sample] = ()) -> Target:
    """Makes the profile from samples; opsets, IR versions and dynamic axes are tried here.

    Samples hold no times: the rows of the shipped profile with the verdict slow are kept.

    Args:
        engine: The engine.
        version: Its version.
        found: The samples that rows are made of.
        date: Date of the measurement.
        typed: The samples of operators in other element types.
    """
    works, rows = condense(found)
    slow = _slow(engine.name)
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
        rows=tuple(sorted((*rows, *slow), key=lambda row: row.op_type)),
        measured=True,
        runs=not engine.builds,
        ir_version=ir_version,
        dynamic=dynamic,
        folds=folds,
        works=works - {row.op_type for row in slow},
        types=condense_types(typed),
        date=date,
        how=how,
        placement=load_target(engine.name).placement if engine.name in known_targets() else None,
    )


def _slow(name: str) -> list[Row]:
    return [row for row in load_target(name).rows if row.verdict == "slow"] if name in known_targets() else []
