"""Compares an output of the file with the original's: one row of the verification table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]

RTOL = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""Largest difference relative to the value, by dtype: some hundred rounding errors of the dtype."""

ATOL = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference relative to the output's typical magnitude, for values near zero."""

_DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16}

NOISE_FACTOR = 8.0
"""Largest error of a file against float64, as a multiple of eager torch's own error."""

NOISE_LIMIT = 1e-2
"""Largest error that noise excuses, relative to the output's largest value."""


@dataclass(frozen=True)
class Comparison:
    """One output of one case."""

    case: str
    output: str
    max_abs: float
    max_rel: float
    """Largest difference over the output's largest value."""
    tolerance: str
    ok: bool
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return dict(vars(self))


def compare(
    case: str, output: str, found: Array, wanted: Tensor, rtol: float | None = None, atol: float | None = None
) -> Comparison:
    """Compares one output.

    Integers and booleans must be equal; NaN and infinities must stand at the same places with the same signs; finite
    values may differ by ``rtol * |wanted| + atol * m``, m being the median magnitude of the non-zero wanted values.

    Args:
        case: Label of the case.
        output: Name of the output.
        found: The file's output.
        wanted: The original's output.
        rtol: Relative tolerance; by dtype if None.
        atol: Tolerance relative to the typical magnitude; by dtype if None.
    """
    reference = as_array(wanted)
    dtype = wanted.dtype.to_real()
    failure = _mismatch(found, reference, dtype)
    if failure is not None:
        return Comparison(case, output, float("nan"), float("nan"), "", False, failure)
    if not dtype.is_floating_point:
        return _compare_exactly(case, output, found, reference)
    relative = RTOL[dtype] if rtol is None else rtol
    absolute = ATOL[dtype] if atol is None else atol
    finite = np.isfinite(reference)
    if not np.array_equal(np.nan_to_num(found[~finite]), np.nan_to_num(reference[~finite])) or not np.array_equal(
        np.isfinite(found), finite
    ):
        return Comparison(case, output, float("inf"), float("inf"), "", False, "NaN or infinities stand elsewhere")
    a, b = found[finite].astype(np.float64), reference[finite].astype(np.float64)
    difference = np.abs(a - b)
    allowed = _limits(b, relative, absolute)
    max_abs, max_rel = _extremes(difference, b)
    tolerance = f"{relative:g} rel + {absolute:g} of median"
    ok = bool((difference <= allowed).all())
    return Comparison(
        case, output, max_abs, max_rel, tolerance, ok, "" if ok else _describe_worst(a, b, difference, allowed)
    )


def judge_by_noise(
    row: Comparison,
    found: Array,
    wanted: Tensor,
    exact: Tensor,
    limit: float = NOISE_LIMIT,
    factor: float = NOISE_FACTOR,
    name: str = "against float64",
) -> Comparison:
    """Judges a failed row again in units of the original's own rounding error.

    Where eager torch is off a float64 run by nearly as much as the file, the model amplifies rounding and the file is
    not at fault.

    Args:
        row: The failed comparison.
        found: The file's output.
        wanted: The original's output in its own dtype.
        exact: The original's output in float64.
        limit: Largest error that noise excuses, relative to the largest value.
        factor: Largest error, as a multiple of the original's own error.
        name: How the row's detail calls the original's own error.
    """
    reference, precise = as_array(wanted).astype(np.float64), as_array(exact).astype(np.float64)
    if _mismatch(found, as_array(wanted), wanted.dtype) is not None:
        return row
    if reference.shape != precise.shape or not np.isfinite(precise).all() or not np.isfinite(found).all():
        return row
    noise = float(np.abs(reference - precise).max(initial=0.0))
    error = float(np.abs(found.astype(np.float64) - precise).max(initial=0.0))
    scale = float(np.abs(precise).max(initial=0.0)) or 1.0
    if error <= min(factor * noise, limit * scale):
        detail = f"{error / noise if noise else 0:.1f} x eager's own rounding error {name}"
        return Comparison(row.case, row.output, row.max_abs, row.max_rel, f"{factor:g} x noise", True, detail)
    return row


def is_close(found: Array, wanted: Array) -> Array:
    """Marks the values that are right within the default tolerance, for arrays of one shape."""
    if wanted.dtype.kind != "f":
        equal: Array = found == wanted
        return equal
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near: Array = (np.abs(a - b) <= allowance(wanted)) | (a == b) | (np.isnan(a) & np.isnan(b))
    return near


def allowance(wanted: Array) -> Array:
    """The default tolerance of each of these floating-point values."""
    dtype = _DTYPES.get(wanted.dtype.name, torch.float32)
    return _limits(wanted.astype(np.float64), RTOL[dtype], ATOL[dtype])


def _limits(wanted: Array, rtol: float, atol: float) -> Array:
    limits: Array = rtol * np.abs(wanted) + atol * _typical_magnitude(wanted[np.isfinite(wanted)])
    return limits


def _mismatch(found: Array, reference: Array, dtype: torch.dtype) -> str | None:
    if found.shape != reference.shape:
        return f"shape {tuple(found.shape)}, wanted {tuple(reference.shape)}"
    if found.dtype != reference.dtype and dtype is not torch.bfloat16:
        return f"element type {found.dtype}, wanted {reference.dtype}"
    return None


def _compare_exactly(case: str, output: str, found: Array, reference: Array) -> Comparison:
    wrong = int((found != reference).sum())
    difference = np.abs(found.astype(np.float64) - reference.astype(np.float64))
    max_abs, max_rel = _extremes(difference, reference.astype(np.float64))
    detail = f"{wrong} of {reference.size} values differ" if wrong else ""
    return Comparison(case, output, max_abs, max_rel, "equal", wrong == 0, detail)


def _extremes(difference: Array, reference: Array) -> tuple[float, float]:
    max_abs = float(difference.max(initial=0.0))
    scale = float(np.abs(reference).max(initial=0.0))
    return max_abs, max_abs / scale if scale else max_abs


def _typical_magnitude(reference: Array) -> float:
    magnitudes = np.abs(reference)
    magnitudes = magnitudes[magnitudes > 0]
    return float(np.median(magnitudes)) if magnitudes.size else 1.0


def _describe_worst(a: Array, b: Array, difference: Array, allowed: Array) -> str:
    where = int(np.argmax(difference - allowed))
    wrong = int((difference > allowed).sum())
    return f"{wrong} of {a.size} values differ, e.g. {a.flat[where]:.6g} for {b.flat[where]:.6g}"


def as_array(tensor: Tensor) -> Array:
    """A tensor's values; bfloat16 ones widened to float32, complex ones as pairs."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    array: Array = tensor.resolve_conj().resolve_neg().contiguous().numpy()
    return array
