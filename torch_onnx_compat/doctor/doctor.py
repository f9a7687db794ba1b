"""doctor(): finds the obstacles to an export without exporting."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from torch import nn

from torch_onnx_compat.backends.custom_operators import translated_operators
from torch_onnx_compat.backends.trace_numbers import sizes_as_numbers
from torch_onnx_compat.candidates import patched_subject
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.check.cases import Cases
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.doctor.model import Severity, Symptom, examine_forward, examine_weights
from torch_onnx_compat.doctor.precision import examine_precision
from torch_onnx_compat.doctor.trace import examine_trace
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.observe import Observation, Subject
from torch_onnx_compat.plan import make_plan
from torch_onnx_compat.precision.formats import Half, precision_from_keyword
from torch_onnx_compat.precision.int8.request import Request
from torch_onnx_compat.prepare import Prepared, export_conditions, prepare
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.size_facts import SizeFacts
from torch_onnx_compat.rewrite import watched_functions
from torch_onnx_compat.targets import Target, choose_opset, load_target

_ORDER: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Checkup:
    """The findings of doctor(), the worst first."""

    findings: tuple[Symptom, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def healthy(self) -> bool:
        """Whether there are neither errors nor warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "nothing stands in the way."
        return "\n".join(str(finding) for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data."""
        return {"ok": self.ok, "findings": [vars(finding) for finding in self.findings]}


def doctor(
    model: Any,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: str | os.PathLike[str] | Target = "onnxruntime",
    opset_version: int | None = None,
    exporter: Literal["auto", "torchscript", "dynamo"] = "auto",
    dynamic: str | Mapping[str, Any] | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    precision: Literal["float32", "float16", "bfloat16"] | Half | Request | None = None,
) -> Checkup:
    """Looks for obstacles to an export, in some eager runs and one trace; in a few where Python decides on values.

    Args:
        model: As for export_compat.
        args: As for export_compat.
        kwargs: As for export_compat.
        target: As for export_compat.
        opset_version: As for export_compat.
        exporter: As for export_compat.
        dynamic: As for export_compat.
        include: As for export_compat.
        exclude: As for export_compat.
        precision: The narrower format of the file that is planned: what overflows in it, and what loses too much.

    Returns:
        Errors, which stop an export; warnings, with which it may give another result than is wanted; and
        information.

    Raises:
        CompatError: The target, the exporter, the precision or an entry's name is wrong.
    """
    half = precision_from_keyword(precision)
    if half is not None and not isinstance(half, Half):
        raise CompatError(
            f"precision={half.name!r}: doctor() measures float16 and bfloat16; what fewer bits lose is measured on "
            f"the finished graph, and told in result.precision."
        )
    resolved = load_target(target)
    if exporter not in ("auto", *EXPORTERS):
        raise unknown_name("exporter", exporter, ("auto", *EXPORTERS))
    opset = choose_opset(opset_version, resolved)
    plan = make_plan(
        catalogue(),
        exporter="dynamo" if exporter == "dynamo" else "torchscript",
        opset=opset,
        target=resolved,
        include=include,
        exclude=exclude,
    )
    findings: list[Symptom] = []
    with export_conditions():
        for finding in _examine(model, args, kwargs, dynamic, plan, exporter, half):
            findings.append(finding)
    unique = dict.fromkeys(findings)
    return Checkup(tuple(sorted(unique, key=lambda finding: _ORDER.index(finding.severity))))


def _examine(
    model: Any, args: Any, kwargs: Any, dynamic: Any, plan: Any, exporter: str, half: Half | None
) -> Iterator[Symptom]:
    if isinstance(model, nn.Module):
        yield from examine_weights(model)
    try:
        prepared = prepare(model, args, kwargs=kwargs, dynamic=dynamic)
        prepared = replace(prepared, translated_operators=translated_operators(catalogue(), ()))
        prepared.twin()
    except CompatError as error:
        yield Symptom("error", "", str(error), "")
        return
    for note in prepared.notes:
        yield Symptom("warning", "", note, "")
    observation = Observation(prepared)
    failed = False
    for finding in examine_forward(prepared, observation):
        failed = failed or finding.severity == "error"
        yield finding
    if failed:
        return
    yield from _examine_sizes(prepared, observation)
    if half is not None:
        samples = Cases(observation, Verify(), half.samples).samples()
        yield from examine_precision(prepared, observation, half, list(samples))
    inputs = observation.trace_inputs()
    functions = watched_functions(plan.rewrites())
    facts = SizeFacts(SymbolicRuns(observation, functions), functions, inputs)

    def make_subject() -> Subject:
        subject = patched_subject(prepared, plan, facts)
        subject.wrap(partial(sizes_as_numbers, prepared.python_modules))
        return subject

    yield from examine_trace(make_subject, inputs, plan, exporter)


def _examine_sizes(prepared: Prepared, observation: Observation) -> Iterator[Symptom]:
    """Finds axes that are declared dynamic, but that the model itself accepts at one size only."""
    if not prepared.inputs.sizes():
        return
    cases = Cases(observation, Verify(values=0))
    try:
        for _ in cases:
            pass
    except CompatError as error:
        yield Symptom("error", "", str(error), "")
    for note in cases.notes:
        yield Symptom("info", "", note, "")
