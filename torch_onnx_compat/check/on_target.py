"""Compares a file in the target's own engine with the original model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import torch

from torch_onnx_compat.check.cases import Case, Cases
from torch_onnx_compat.check.chain import Chain
from torch_onnx_compat.check.compare import Array, Comparison, as_array, compare, judge_by_noise, relative_distance
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.check.verify import run_session
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess
from torch_onnx_compat.engines.compare import first_run_fault
from torch_onnx_compat.engines.ranges import Ranges
from torch_onnx_compat.engines.turns import LIMIT
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.session import inputs_of, open_session
from torch_onnx_compat.shape_ranges import shape_ranges
from torch_onnx_compat.targets import Target

if TYPE_CHECKING:
    from torch_onnx_compat.surgery.on_graph.stage import Stage

_FACTOR = 5
"""Tolerance of a whole model, as a multiple of the engine's tolerance for a single operator."""
_NARROW_FACTOR = 4
"""Largest error of an engine that computes in fewer bits, as a multiple of eager torch's error in that element type.
RKNN was seen to be 0.5 to 1.5 times as far off, in nine networks."""
NARROW_LIMIT = 5e-2
"""Largest such error, relative to the output's largest value."""


class NoValues(Exception):
    """The engine builds the file, and nothing is known of the values."""


class EngineSession:
    """A file in an engine, with the interface of an onnxruntime session as far as `Chain` uses it.

    Args:
        process: The engine.
        path: The file.
        ranges: The shapes that an engine which builds files builds it for, of the inputs that have dynamic axes.
    """

    def __init__(self, process: EngineProcess, path: str | os.PathLike[str], ranges: Ranges | None = None) -> None:
        graph = onnx.load(path, load_external_data=False).graph
        self._process = process
        self._ranges = ranges or {}
        self._path = path
        self._inputs = inputs_of(graph)
        self._outputs = {value.name: value for value in graph.output}
        self._last_values: list[onnxruntime.OrtValue] = []
        """The last outputs: they must outlive the arrays that are taken from them, which share their memory."""

    def get_inputs(self) -> list[Any]:
        """The file's inputs."""
        return self._inputs

    def get_outputs(self) -> list[Any]:
        """The file's outputs."""
        return list(self._outputs.values())

    def run_with_ort_values(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Runs the file; the interface is onnxruntime's.

        Raises:
            RuntimeError: The engine refuses the file, crashes, or computes something else when it runs it again.
        """
        arrays = {name: value.numpy() for name, value in feeds.items()}
        outcome = self._process.run(self._path, arrays, names, self._ranges)
        if outcome.status == "built" and not outcome.outputs:
            raise NoValues(outcome.error)
        if outcome.status not in ("ran", "built"):
            raise RuntimeError(outcome.error)
        if fault := first_run_fault(outcome, tolerance_of(self._process.engine)):
            raise RuntimeError(fault)
        self._last_values = [
            onnxruntime.OrtValue.ortvalue_from_numpy(cast_output(found, self._outputs[name]))
            for name, found in zip(names, outcome.outputs, strict=True)
        ]
        return self._last_values


def tolerance_of(engine: Engine) -> tuple[float, float]:
    """The relative and the absolute tolerance of a whole file in an engine."""
    rtol, atol = engine.tolerance
    return _FACTOR * rtol, _FACTOR * atol


def cast_output(found: Array, declared: onnx.ValueInfoProto) -> Array:
    """An output in the type and rank that the file declares: some engines lack int64 or scalars."""
    tensor = declared.type.tensor_type
    if tensor.elem_type:
        found = found.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    is_number = tensor.HasField("shape") and not tensor.shape.dim
    return np.asarray(found.reshape(()) if is_number and found.size == 1 else found, order="C")


def verify_on_target(
    path: str | os.PathLike[str],
    names: Sequence[str],
    cases: Cases,
    target: Target,
    how: Verify,
    before: Sequence[Stage] = (),
    after: Sequence[Stage] = (),
    *,
    within: float = 0.0,
) -> tuple[Comparison, ...]:
    """Compares a file, run in the target's engine, with the original model on every case.

    Where the engine has no adapter or is not installed, `cases` gets a note and nothing is run.

    Args:
        path: The file.
        names: Its outputs, or those of the last stages.
        cases: Inputs, and what the original computes.
        target: The engine.
        how: Tolerances; the engine's own are tried first.
        before: Stages that onnxruntime runs before the file.
        after: Stages that onnxruntime runs after the file.
        within: Of a file in a narrower format, how far an output may be from onnxruntime's of the same file, relative
            to its size.

    Returns:
        One row for each case and output.

    Raises:
        VerificationError: The engine refuses the file, crashes, or a value is off; holds the table so far.
    """
    engine = ENGINES.get(target.name)
    if engine is None or engine.interpreter() is None:
        install = f"it is not installed; run torch-onnx-compat measure {target.name} --install"
        why = "there is no adapter for it" if engine is None else install
        cases.notes.append(f"not run on {target.name}: {why}.")
        return ()
    rows: list[Comparison] = []
    shapes = shape_ranges(cases.observation.prepared.inputs, cases.proofs)
    ranges = {name: [list(r.least), list(r.usual), list(r.most)] for name, r in shapes.items()}
    with EngineProcess(engine, LIMIT) as process:
        first, last = ([(stage.session(), stage.feeds) for stage in stages] for stages in (before, after))
        session = Chain([*first, (EngineSession(process, path, ranges), {}), *last], names)  # type: ignore[list-item]
        of_file = _values_of_file(path, first, last, names) if within else None
        for case in cases:
            label = f"{case.label} on {target.name} {process.version}"
            try:
                found = run_session(session, case.inputs, names)  # type: ignore[arg-type]
            except NoValues as none:
                cases.notes.append(f"built for {target.name} {process.version}, but its values are not known: {none}")
                return tuple(rows)
            except Exception as error:
                row = Comparison(label, "", float("nan"), float("nan"), "", False, f"fails: {error}")
                raise VerificationError(
                    f"{target.name} does not run the file, case {case.label!r}: {error}", (*rows, row), case.inputs
                ) from error
            if engine.builds:
                label = f"{case.label}, parsed by {target.name} {process.version}"
            compared = _compare_case(label, names, found, case, engine, cases.observation, how)
            if of_file is not None and not all(row.ok for row in compared):
                values = of_file(case)
                compared = [judge_by_size(*row, within) for row in zip(compared, found, values, strict=True)]
            rows += compared
            bad = [row for row in rows if not row.ok]
            if bad:
                raise VerificationError(
                    f"{target.name} computes something else, case {case.label!r}, output {bad[0].output!r}: "
                    f"{bad[0].detail}",
                    tuple(rows),
                    case.inputs,
                )
    return tuple(rows)


def _compare_case(
    label: str,
    names: Sequence[str],
    found: Sequence[Array],
    case: Case,
    engine: Engine,
    observation: Observation,
    how: Verify,
) -> list[Comparison]:
    rtol, atol = tolerance_of(engine)
    wanted = [tensor.detach() for tensor in case.reference.outputs]
    rows = [compare(label, n, a, b, rtol, atol) for n, a, b in zip(names, found, wanted, strict=True)]
    if all(row.ok for row in rows):
        return rows
    if engine.computes_in == "float32":  # rounding excuses the same differences as in onnxruntime
        others = compare_outputs(names, found, case, how, observation)
        return [row if row.ok else replace(other, case=label) for row, other in zip(rows, others, strict=True)]
    return _judge_by_narrow_type(rows, found, wanted, case, engine.computes_in, observation)


def _values_of_file(
    path: str | os.PathLike[str], first: Any, last: Any, names: Sequence[str]
) -> Callable[[Case], Sequence[Array]]:
    """What onnxruntime makes of the file; the original's outputs where it has no kernels for it."""
    try:
        session = Chain([*first, (open_session(path), {}), *last], names)
    except Exception:  # as of bfloat16; whoever made the file noted it
        return lambda case: [as_array(output) for output in case.reference.outputs]
    return lambda case: run_session(session, case.inputs, names)  # type: ignore[arg-type]


def judge_by_size(row: Comparison, found: Array, wanted: Array, within: float) -> Comparison:
    """Passes a row whose output is off by no more than this part of its size."""
    distance = relative_distance([(found, wanted)])
    if row.ok or distance > within:
        return row
    return replace(row, ok=True, tolerance=f"{within:.2g} of its size", detail=f"off by {distance:.2g} of its size")


def _judge_by_narrow_type(
    rows: list[Comparison],
    found: Sequence[Array],
    wanted: Sequence[torch.Tensor],
    case: Case,
    computes_in: str,
    observation: Observation,
) -> list[Comparison]:
    """Judges the failed rows by eager torch's error in the engine's element type."""
    try:
        narrow = observation.reference(f"{case.label} in {computes_in}", case.inputs, getattr(torch, computes_in))
    except ModelRefused:
        return rows
    return judge_by_narrow_run(rows, found, narrow.outputs, wanted, computes_in)


def judge_by_narrow_run(
    rows: Sequence[Comparison],
    found: Sequence[Array],
    narrow: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    computes_in: str,
) -> list[Comparison]:
    """Judges the failed rows by the original's own error in an engine's element type.

    Args:
        rows: One for each output.
        found: What the engine gives.
        narrow: What the original gives, run in that type.
        wanted: What the original gives in its own.
        computes_in: The type.
    """
    if [o.shape for o in narrow] != [o.shape for o in wanted]:
        return list(rows)
    name = f"in {computes_in}"
    return [
        row
        if row.ok or not exact.is_floating_point()
        else judge_by_noise(row, array, own.to(exact.dtype), exact, NARROW_LIMIT, _NARROW_FACTOR, name)
        for row, array, own, exact in zip(rows, found, narrow, wanted, strict=True)
    ]
