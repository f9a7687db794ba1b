"""Measures an engine: runs probes in it and compares its outputs with onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.engines.basics import opsets
from torch_onnx_compat.engines.compare import Array, judge, reference
from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.probe_contexts import Probe, model_before
from torch_onnx_compat.engines.process import EngineProcess, Outcome
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.targets.target import PASSED, Verdict

UNSTABLE = "its numbers differ from run to run"
_LIMIT, _BUILD_LIMIT = 20.0, 120.0
"""Seconds that a probe may take; a builder compiles kernels."""
_TRIES = 6
"""How often a probe that passed is run again, where the engine reads uninitialised memory."""


@dataclass(frozen=True)
class Sample:
    """The result of one probe in an engine."""

    name: str
    op_type: str
    facts: dict[str, Any]
    verdict: Verdict
    reason: str = ""


def run_probes(
    engine: Engine, probes: Iterable[Probe], progress: Callable[[str], None] = lambda _: None
) -> tuple[str, list[Sample]]:
    """Runs probes in an engine.

    Args:
        engine: The engine.
        probes: The probes. Some are left out: those that onnxruntime itself does not run, those of opsets that the
            engine does not accept, those for which it asks for a device that is not here, those that rounding to the
            engine's element type decides, and those whose nodes before the tested one the engine does not run.
        progress: Called with each probe's name.

    Returns:
        The engine's version, and a sample for each probe.

    Raises:
        CompatError: The engine is not installed.
    """
    found: list[Sample] = []
    tried: dict[str, tuple[Probe, Sequence[Array]]] = {}
    with EngineProcess(engine, limit=_BUILD_LIMIT if engine.builds else _LIMIT) as process:
        version = process.version
        _, highest = opsets(process)
        for probe in sorted(probes, key=lambda probe: probe.op_type):
            wanted = _reference_outputs(engine, probe) if probe.opset <= highest else None
            if wanted is None:
                continue
            if found and found[-1].op_type != probe.op_type:
                process.restart()  # so that another operator's leftovers in memory decide nothing
            progress(probe.name)
            verdict, reason = _verdict(engine, process, probe, wanted)
            if verdict == "unknown":
                continue
            if verdict not in PASSED and not _is_reached(process, probe):
                continue
            found.append(Sample(probe.name, probe.op_type, facts_of(probe), verdict, reason))
            tried[probe.name] = (probe, wanted)
        unstable = {sample.op_type for sample in found if sample.reason == UNSTABLE}
        for index, sample in enumerate(found):
            if sample.op_type in unstable and sample.verdict in PASSED:
                progress(f"{sample.name} again")
                verdict, reason = _rerun(engine, process, *tried[sample.name])
                found[index] = replace(sample, verdict=verdict, reason=reason)
    return version, found


def _reference_outputs(engine: Engine, probe: Probe) -> Sequence[Array] | None:
    """The outputs of onnxruntime for a probe; None if it does not run the probe, or if rounding decides."""
    try:
        wanted = reference(probe.model.SerializeToString(), probe.feeds)
    except Exception:  # onnxruntime's errors have no common class
        return None
    return None if rounding_decides(engine, probe, wanted) else wanted


def _is_reached(process: EngineProcess, probe: Probe) -> bool:
    """Whether the engine runs the nodes before the probe's node."""
    model = model_before(probe)
    if model is None:
        return True
    feeds = {value.name: probe.feeds[value.name] for value in model.graph.input}
    return process.run(model.SerializeToString(), feeds, [value.name for value in model.graph.output]).status in (
        "ran",
        "built",
    )


def rounding_decides(engine: Engine, probe: Probe, wanted: Sequence[Array]) -> bool:
    """Whether onnxruntime too computes something else once the inputs are rounded to the engine's element type."""
    if engine.computes_in == "float32":
        return False
    with np.errstate(over="ignore"):
        feeds = {
            name: array.astype(engine.computes_in).astype(array.dtype) if array.dtype.kind == "f" else array
            for name, array in probe.feeds.items()
        }
    rounded = Outcome("ran", tuple(reference(probe.model.SerializeToString(), feeds)))
    return judge(rounded, wanted, engine.tolerance)[0] not in PASSED


def _rerun(engine: Engine, process: EngineProcess, probe: Probe, wanted: Sequence[Array]) -> tuple[Verdict, str]:
    """Runs a probe that passed several times again: an engine that reads uninitialised memory may be right by luck."""
    model = probe.model.SerializeToString()
    for _ in range(_TRIES):
        outcome = process.run(model, probe.feeds, probe.outputs)
        if judge(outcome, wanted, engine.tolerance)[0] != "works":
            return "wrong", UNSTABLE
    return "works", ""


def _verdict(engine: Engine, process: EngineProcess, probe: Probe, wanted: Sequence[Array]) -> tuple[Verdict, str]:
    """Runs a probe, and again in a new process where the result is bad.

    An earlier probe, or uninitialised memory, may be the cause of a bad result. A result that differs in the second run
    gets the reason UNSTABLE, because the next measurement would not find the same numbers.
    """
    model = probe.model.SerializeToString()
    outcome = process.run(model, probe.feeds, probe.outputs)
    verdict, reason = judge(outcome, wanted, engine.tolerance)
    if verdict not in ("wrong", "crashes"):
        return verdict, reason
    process.restart()
    again = process.run(model, probe.feeds, probe.outputs)
    second = judge(again, wanted, engine.tolerance)
    if verdict == "crashes":
        return second
    return verdict, reason if second == (verdict, reason) else UNSTABLE


def facts_of(probe: Probe) -> dict[str, Any]:
    """The facts of a probe's node."""
    model = ir.from_proto(probe.model)
    return node_facts(model.graph[probe.position], model.opset_imports[""])
