"""Judges a file of half the width: how far it is off from eager float64, beside eager float32 and eager half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import Array, as_array
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.precision.formats import Half

FEWEST = 8
"""Values in the smallest slice of an output that tells what is usual in it."""

EXCUSED = 2.0
"""Largest error of a file, as a multiple of eager half's."""

SPREAD = 100.0
"""Largest mean error that eager half's excuses, in units of the format's last place: beyond it nothing is right."""

Run = Callable[[Inputs], Sequence[Array]]


@dataclass(frozen=True)
class Error:
    """How far an output is off."""

    worst: float
    """The largest error of a value; 1 for a whole number that differs, infinity for a value that is not finite."""
    mean: float
    """The root of the mean square of the values' errors; of whole numbers, the share that differs."""


@dataclass(frozen=True)
class CaseError:
    """How far one output of one case is off in the file, its rendering, eager float32 and eager half."""

    case: str
    output: str
    file: Error | None
    """What onnxruntime makes of the file; None where it does not run it."""
    rendering: Error
    """With a rounding behind every narrow node, as an engine computes that has the format."""
    float32: Error
    eager: Error | None
    """Eager torch in the format; None where it was not needed or does not run."""
    ok: bool
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        errors = {name: getattr(self, name) for name in ("file", "rendering", "float32", "eager")}
        told = {name: error and {"worst": error.worst, "mean": error.mean} for name, error in errors.items()}
        return {"case": self.case, "output": self.output, "ok": self.ok, "why": self.why, **told}


def errors_of(found: Array, exact: Array, counts: Array | None = None) -> Error:
    """The error of an output: of each value, relative to the value or to what is usual around it.

    What is usual is the root mean square of its row, column or channel, whichever of them is the calmest: scores are
    not excused by the boxes beside them.

    Args:
        found: The output.
        exact: What it should be, of the same shape.
        counts: Marks the values that must be finite; others do not count. All by default.
    """
    if found.shape != exact.shape:
        return Error(float("inf"), float("inf"))
    if not exact.size:
        return Error(0.0, 0.0)
    if exact.dtype.kind != "f":
        differ = found != exact
        return Error(float(differ.any()), float(differ.mean()))
    wanted = exact.astype(np.float64)
    finite = np.isfinite(wanted) & (True if counts is None else counts)
    if not finite.any():
        return Error(0.0, 0.0)
    if not np.isfinite(found[finite]).all():
        return Error(float("inf"), float("inf"))
    usual = _usual(np.where(finite, wanted, 0.0))
    with np.errstate(invalid="ignore"):
        distance = np.abs(found.astype(np.float64) - wanted)
    errors = (distance / np.maximum(np.maximum(np.abs(wanted), usual), 1e-300))[finite]
    return Error(float(errors.max()), float(np.sqrt(np.mean(np.minimum(errors, 1e9) ** 2))))


def _usual(values: Array) -> Array:
    squares = values**2
    result = np.full(values.shape, np.sqrt(squares.mean()))
    for axis, size in enumerate(values.shape):
        if size > 1 and values.size >= FEWEST * size:
            others = tuple(other for other in range(values.ndim) if other != axis)
            slices = np.sqrt(squares.mean(axis=others, keepdims=True))
            result = np.where(slices > 0, np.minimum(result, slices), result)
    return result


class Judge:
    """Compares files with the original, case by case.

    Args:
        observation: Runs the original.
        half: The format and its limit.
        names: Names of the outputs.
    """

    def __init__(self, observation: Observation, half: Half, names: Sequence[str]) -> None:
        self._observation, self._half, self._names = observation, half, names
        self.notes: list[str] = []

    def judge(self, case: Case, file: Run | None, rendering: Run) -> list[CaseError]:
        """Compares a file on one case.

        Args:
            case: The inputs, and the original's float32 outputs.
            file: Runs the file; None where onnxruntime does not.
            rendering: Runs its rendering.

        Returns:
            A row for each output.
        """
        case = self._as_fed(case)
        exact = self._run(case, torch.float64)
        wanted = [as_array(o) for o in (exact or case.reference.outputs)]
        plain = [as_array(o) for o in case.reference.outputs]
        if exact is None or [w.shape for w in wanted] != [p.shape for p in plain]:
            self._note("eager torch does not run in float64 here, so its float32 was compared with.")
            wanted = plain
        found = [[np.asarray(o) for o in run(case.inputs)] if run is not None else None for run in (file, rendering)]
        rows = [self._row(case.label, i, found, wanted[i], plain[i]) for i in range(len(wanted))]
        if case.label == "example" or not all(row.ok for row in rows):
            rows = self._beside_eager(case, rows, wanted, plain)
        return rows

    def _row(self, label: str, i: int, found: Sequence[Any], wanted: Array, plain: Array) -> CaseError:
        counts = np.isfinite(plain) if plain.dtype.kind == "f" else None
        file, rendering = (None if f is None else errors_of(f[i], wanted, counts) for f in found)
        assert rendering is not None
        row = CaseError(label, self._names[i], file, rendering, errors_of(plain, wanted, counts), None, False)
        return replace(row, ok=self._is_right(row, wanted.dtype.kind == "f"))

    def _beside_eager(
        self, case: Case, rows: list[CaseError], wanted: Sequence[Array], plain: Sequence[Array]
    ) -> list[CaseError]:
        eager = self._run(case, self._half.torch_type)
        if eager is None:
            self._note(f"eager torch does not run in {self._half.name} here, so its error is not known.")
            return rows
        told = []
        for row, output, exact, single in zip(rows, eager, wanted, plain, strict=True):
            counts = np.isfinite(single) if single.dtype.kind == "f" else None
            beside = replace(row, eager=errors_of(as_array(output), exact, counts))
            told.append(replace(beside, ok=self._is_right(beside, exact.dtype.kind == "f")))
        return told

    def _is_right(self, row: CaseError, is_float: bool) -> bool:
        """Whether the file and its rendering are finite where eager torch is, and off by no more than is allowed."""
        bound = self._half.bound if is_float else 0.0
        for error in (row.file, row.rendering):
            if error is None or error.worst <= max(bound, EXCUSED * row.float32.worst):
                continue
            if row.eager is None or error.worst > EXCUSED * row.eager.worst or error.worst == float("inf"):
                return False
            if error.mean > max(bound, min(EXCUSED * row.eager.mean, SPREAD * self._half.unit)):
                return False
        return True

    def _as_fed(self, case: Case) -> Case:
        """The case with the inputs that the file gets: rounded, where its inputs are narrow."""
        if self._half.keep_io:
            return case
        inputs = replace(case.inputs, tensors=tuple(_rounded(t, self._half.torch_type) for t in case.inputs.tensors))
        try:
            reference = self._observation.reference(f"{case.label}, rounded to {self._half.name}", inputs)
        except ModelRefused:
            return case
        return replace(case, inputs=inputs, reference=reference)

    def _run(self, case: Case, dtype: torch.dtype) -> tuple[Tensor, ...] | None:
        """The original's outputs in an element type, in that of the case's for whole numbers; None where it refuses."""
        name = str(dtype).removeprefix("torch.")
        rounded = "" if self._half.keep_io else " of rounded inputs"
        try:
            outputs = self._observation.reference(f"{case.label} in {name}{rounded}", case.inputs, dtype).outputs
        except ModelRefused:
            return None
        return outputs if len(outputs) == len(case.reference.outputs) else None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _rounded(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype).to(tensor.dtype) if tensor.dtype is torch.float32 else tensor
