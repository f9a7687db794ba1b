"""Judges a file of half the width: how far it is off from eager float64, beside eager float32 and eager half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import Array, as_array
from torch_onnx_compat.check.perturbed_runs import runs_rounded_otherwise
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.rows import RUNS, SHARE, RowGroup, largest_own_share, match_rows, row_groups

FEWEST = 8
"""Values in the smallest slice of an output that tells what is usual in it."""

EXCUSED = 2.0
"""Largest error of a file, as a multiple of eager half's."""

SPREAD = 100.0
"""Largest mean error that eager half's excuses, in units of the format's last place: beyond it nothing is right."""

LEAST = 1e-6
"""What is usual in an output is at least this part of what it is on the example: numbers near zero may cancel."""

LEAST_OF_SPECIAL = 1e-3
"""The same at special values, where whole outputs cancel."""

NEGLIGIBLE = 0.01
"""The part of the limit below which eager float32's error does not matter."""

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
    float32: Error | None
    """Eager torch in float32; None where it was the reference."""
    eager: Error | None
    """Eager torch in the format; None where it was not needed or does not run."""
    ok: bool
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        errors = {name: getattr(self, name) for name in ("file", "rendering", "float32", "eager")}
        told = {name: error and {"worst": error.worst, "mean": error.mean} for name, error in errors.items()}
        return {"case": self.case, "output": self.output, "ok": self.ok, "why": self.why, **told}


def errors_of(found: Array, exact: Array, counts: Array | None = None, least: float = 0.0) -> Error:
    """The error of an output: of each value, relative to the value or to what is usual around it.

    What is usual is the root mean square of its row, column or channel, whichever of them is the calmest: scores are
    not excused by the boxes beside them.

    Args:
        found: The output.
        exact: What it should be, of the same shape.
        counts: Marks the values that must be finite; others do not count. All by default.
        least: The least that counts as usual.
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
    errors = (distance / np.maximum(np.maximum(np.abs(wanted), usual), max(least, 1e-30)))[finite]
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
        self._usual: list[float] = []
        self._trusts_float32: bool | None = None
        self._groups: list[RowGroup] | None = None

    def judge(self, case: Case, file: Run | None, rendering: Run, *, is_special: bool = False) -> list[CaseError]:
        """Compares a file on one case.

        What the file should give is eager float64's. Where eager float32 was as good as exact on the first case, it
        stands for float64 on the others, as long as the file is right.

        Args:
            case: The inputs, and the original's float32 outputs; of the first call, the example's.
            file: Runs the file; None where onnxruntime does not.
            rendering: Runs its rendering.
            is_special: Whether the inputs are special values.

        Returns:
            A row for each output.
        """
        case = self._as_fed(case)
        found = [None if run is None else [np.asarray(o) for o in run(case.inputs)] for run in (file, rendering)]
        part = LEAST_OF_SPECIAL if is_special else LEAST
        if self._trusts_float32:
            rows = self._compare_all(case, found, None, part)
            if all(row.ok for row in rows):
                return rows
        exact = self._run(case, torch.float64)
        if exact is None or [o.shape for o in exact] != [o.shape for o in case.reference.outputs]:
            exact = None
            self._note("eager torch does not run in float64 here, so its float32 was compared with.")
        rows = self._compare_all(case, found, exact, part)
        if self._trusts_float32 is None:
            errors = [float("inf") if row.float32 is None else row.float32.worst for row in rows]
            self._trusts_float32 = max(errors, default=0.0) <= NEGLIGIBLE * self._half.bound
        return rows

    def _compare_all(
        self, case: Case, found: Sequence[Any], exact: Sequence[Tensor] | None, part: float
    ) -> list[CaseError]:
        """Compares with the original's float64 outputs; with its float32 ones where there are none."""
        plain = [as_array(o) for o in case.reference.outputs]
        wanted = plain if exact is None else [as_array(o) for o in exact]
        self._usual = self._usual or [_typical(w) for w in wanted]
        compares = [self._compare(w, p, part * usual) for w, p, usual in zip(wanted, plain, self._usual, strict=True)]
        rows = []
        for index, (compare, name) in enumerate(zip(compares, self._names, strict=True)):
            file, rendering = (None if outputs is None else compare(outputs[index]) for outputs in found)
            assert rendering is not None
            float32 = None if exact is None else compare(plain[index])
            row = CaseError(case.label, name, file, rendering, float32, None, False)
            rows.append(replace(row, ok=self._is_right(row, plain[index].dtype.kind == "f")))
        if case.label == "example" or not all(row.ok for row in rows):
            rows = self._beside_eager(case, rows, compares)
        if self._groups is None:
            self._groups = row_groups(wanted, case.reference.paths)
        for group in self._groups:
            if not all(rows[i].ok for i in group.members):
                rows = self._by_rows(case, rows, group, [outputs for outputs in found if outputs is not None], wanted)
        return rows

    def _by_rows(
        self, case: Case, rows: list[CaseError], group: RowGroup, found: Sequence[Any], wanted: Sequence[Array]
    ) -> list[CaseError]:
        """Passes the outputs of a group if no more rows come or go than in eager torch, and a few at most."""
        bound = self._half.bound
        matches = [match_rows(group, outputs, wanted, bound) for outputs in found]
        share = max(match.share for match in matches)
        if share > SHARE:
            return rows
        own = 0.0
        if share:
            step = self._half.unit / torch.finfo(torch.float32).eps / 8
            others = runs_rounded_otherwise(case, self._observation, step, RUNS)
            runs = ([as_array(output) for output in other.reference.outputs] for other in others)
            own = largest_own_share(group, runs, wanted, bound, share)
        if share > own:
            return rows
        why = f"{share:.1%} of its rows come or go, {own:.1%} where eager torch rounds to {self._half.name}"
        told = Error(max(match.worst for match in matches), share)
        return [
            replace(row, file=row.file and told, rendering=told, ok=True, why=why) if i in group.members else row
            for i, row in enumerate(rows)
        ]

    def _compare(self, exact: Array, plain: Array, least: float) -> Callable[[Array], Error]:
        """What says how far an output is off; only values count that are finite in eager float32."""
        counts = np.isfinite(plain) if plain.dtype.kind == "f" else None
        return lambda found: errors_of(found, exact, counts, least)

    def _beside_eager(
        self, case: Case, rows: list[CaseError], compares: Sequence[Callable[[Array], Error]]
    ) -> list[CaseError]:
        eager = self._run(case, self._half.torch_type)
        if eager is None:
            self._note(f"eager torch does not run in {self._half.name} here, so its error is not known.")
            return rows
        told = []
        for row, output, compare in zip(rows, eager, compares, strict=True):
            beside = replace(row, eager=compare(as_array(output)))
            told.append(replace(beside, ok=self._is_right(beside, output.dtype.is_floating_point)))
        return told

    def _is_right(self, row: CaseError, is_float: bool) -> bool:
        """Whether the file and its rendering are finite where eager torch is, and off by no more than is allowed."""
        bound = self._half.bound if is_float else 0.0
        by_float32 = 0.0 if row.float32 is None else EXCUSED * row.float32.worst
        for error in (row.file, row.rendering):
            if error is None or error.worst <= max(bound, by_float32):
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
        rounded = "" if self._half.keep_io else " of rounded inputs"
        outputs = run_in(self._observation, case.label, case.inputs, dtype, f"{dtype_name(dtype)}{rounded}")
        if outputs is None:
            return None
        return outputs if len(outputs) == len(case.reference.outputs) else None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _typical(values: Array) -> float:
    """The root mean square of an output's finite values."""
    if values.dtype.kind != "f":
        return 0.0
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0


def run_in(
    observation: Observation, label: str, inputs: Inputs, dtype: torch.dtype, called: str = ""
) -> tuple[Tensor, ...] | None:
    """The original's outputs in an element type; None where it refuses.

    Args:
        observation: Runs the original.
        label: Names the inputs.
        inputs: What to run it on.
        dtype: The type. Of a model that does not run in float64, what it makes in float32 is made in float64 too.
        called: Names the type.
    """
    label = f"{label} in {called or dtype_name(dtype)}"
    with suppress(ModelRefused):
        return observation.reference(label, inputs, dtype).outputs
    if dtype is torch.float64:
        with suppress(ModelRefused):
            return observation.reference(label, inputs, dtype, within=InDouble()).outputs
    return None


def dtype_name(dtype: torch.dtype) -> str:
    """``float64``, not ``torch.float64``."""
    return str(dtype).removeprefix("torch.")


class InDouble(DispatchMode):
    """While active, what a model makes in float32 itself is made in float64, and mixed operands are float64.

    A model in float64 that makes positions or masks in float32 does not run otherwise.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func._schema.is_mutable:
            args, kwargs = tree_map(_in_double, args), tree_map(_in_double, kwargs or {})
        return func(*args, **(kwargs or {}))


def _in_double(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
        return value.double()
    return torch.float64 if value is torch.float32 else value


def _rounded(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype).to(tensor.dtype) if tensor.dtype is torch.float32 else tensor
