"""Compares an output of the file with the original's: one row of the verification table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

NOISE_FACTOR = 4.0
"""Largest error of a file at a value, as a multiple of eager torch's own change there by a rounding."""

NOISE_LIMIT = 1e-2
"""Largest error that noise excuses, relative to the output's largest value."""

_FEWEST = 8
"""Values in the smallest slice of an output that tells how noisy it is, or how large its values are."""

_MOST_SLICES = 512
"""Slices of an axis of which each is asked how large its values are."""

SMALLEST_SLICE = 1e-2
"""Smallest magnitude of a slice that counts, relative to the output's: what is smaller may be left of what cancels."""

SENTINELS = 0.25
"""Share of equal values from which on they say nothing of the others' magnitude, as those of a mask do."""

EXACT = 2**20
"""Largest value up to which quarters are exact in float32, and far from a rounding."""

OFF_QUARTERS = 1 / 16
"""Largest difference where all values are quarters, such as places of pixels or numbers of tokens held as floats."""

_NOTHING = 1e-12

UNCOMPARED = "nothing to compare"
"""The detail of a row whose output is empty, or has no number but NaN and infinities."""


TYPE_AND_SHAPE = "type and shape"
"""The tolerance of an output whose values differ from run to run."""


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

    @property
    def compares_values(self) -> bool:
        """Whether values were compared: there were some, and not types and shapes alone."""
        return self.tolerance != TYPE_AND_SHAPE and self.detail != UNCOMPARED

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return dict(vars(self))


def compare(
    case: str, output: str, found: Array, wanted: Tensor, rtol: float | None = None, atol: float | None = None
) -> Comparison:
    """Compares one output.

    Integers and booleans must be equal; NaN and infinities must stand at the same places with the same signs; finite
    values may differ by ``rtol * |wanted| + atol * m``, m being the median magnitude of the non-zero wanted values, in
    the whole or in the value's column or channel, whichever is smaller. A value that is repeated over and over, as a
    mask's -1e9, is no part of it.

    Args:
        case: Label of the case.
        output: Name of the output.
        found: The file's output.
        wanted: The original's output.
        rtol: Relative tolerance; by dtype if None.
        atol: Tolerance relative to the typical magnitude; by dtype if None.
    """
    dtype = wanted.dtype.to_real()
    if not _is_comparable(dtype):
        kind = str(dtype).removeprefix("torch.")
        return Comparison(case, output, float("nan"), float("nan"), "", False, f"{kind} values cannot be compared")
    reference = as_array(wanted)
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
    allowed = _limits(reference.astype(np.float64), relative, absolute, is_own=rtol is not None or atol is not None)
    allowed = allowed[finite]
    max_abs, max_rel = _extremes(difference, b)
    tolerance = f"{relative:g} rel + {absolute:g} of median"
    ok = bool((difference <= allowed).all())
    detail = UNCOMPARED if not a.size else "" if ok else _describe_worst(a, b, difference, allowed)
    return Comparison(case, output, max_abs, max_rel, tolerance, ok, detail)


def uncompared(rows: Sequence[Comparison]) -> tuple[str, ...]:
    """The outputs of which no row compares values: a detector found nothing, or they differ from run to run."""
    compared = {row.output for row in rows if row.compares_values}
    return tuple(name for name in dict.fromkeys(row.output for row in rows) if name not in compared)


MOST_ROWS = 12
"""Rows of a table up to which each is printed."""


def comparison_lines(rows: tuple[Comparison, ...]) -> list[str]:
    """A verification table as lines of text with aligned columns; none for an empty one.

    Of a long table there are all rows that are wrong, the first one, and those with the largest differences.
    """
    if not rows:
        return []
    header = ("case", "output", "max abs", "max rel", "tolerance", "verdict")
    cells = [header]
    shown = _most_telling(rows)
    for row in shown:
        verdict = "ok" if row.ok else "WRONG"
        text = f"{verdict}: {row.detail}" if row.detail else verdict
        cells.append((row.case, row.output, f"{row.max_abs:.2g}", f"{row.max_rel:.2g}", row.tolerance, text))
    widths = [max(len(line[i]) for line in cells) for i in range(len(header) - 1)]
    lines = [
        "  " + "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[-1]]) for line in cells
    ]
    if len(shown) < len(rows):
        lines.append(f"  and {len(rows) - len(shown)} more rows, all ok (`table` in Python and --json have them)")
    return lines


def _most_telling(rows: tuple[Comparison, ...]) -> list[Comparison]:
    """Up to MOST_ROWS rows, and all that are wrong, in their order."""

    def rank(place: int) -> tuple[bool, bool, float]:
        row = rows[place]
        return row.ok, place > 0, -np.nan_to_num(row.max_rel, nan=0.0)

    wrong = sum(not row.ok for row in rows)
    first = sorted(range(len(rows)), key=rank)[: max(MOST_ROWS, wrong)]
    return [rows[place] for place in sorted(first)]


def relative_distance(pairs: Sequence[tuple[Array, Array]]) -> float:
    """How far arrays are off, relative to their size; of whole numbers, the share that differs.

    Both are roots of the mean square over all pairs. Infinite where a shape differs, or where a number is not finite
    that should be.

    Args:
        pairs: What was found and what is wanted, of one output.
    """
    noise = signal = 0.0
    for found, wanted in pairs:
        if found.shape != wanted.shape:
            return float("inf")
        if wanted.dtype.kind != "f":
            noise, signal = noise + float((found != wanted).sum()), signal + wanted.size
            continue
        finite = np.isfinite(wanted)
        if not np.isfinite(found[finite]).all():
            return float("inf")
        exact = wanted[finite].astype(np.float64)
        noise += float(np.square(found[finite] - exact).sum())
        signal += float(np.square(exact).sum())
    if pairs[0][1].dtype.kind != "f":
        return noise / max(signal, 1.0)
    return float(np.sqrt(noise / max(signal, _NOTHING)))


def judge_by_noise(
    row: Comparison,
    found: Array,
    wanted: Tensor,
    exact: Tensor,
    limit: float = NOISE_LIMIT,
    factor: float = NOISE_FACTOR,
    name: str = "against float64",
) -> Comparison:
    """Judges a failed row again by how far one other run of the original is off, row by row and column by column.

    One run says little about a single value, which may be right by luck. The noise at a value is therefore the largest
    in its row, column or channel, whichever of them is the calmest; a noisy column excuses no other.

    Args:
        row: The failed comparison.
        found: The file's output.
        wanted: The original's output of the less precise run.
        exact: The original's output of the more precise run.
        limit: Largest error that noise excuses, relative to the largest value.
        factor: Largest error, as a multiple of the noise.
        name: How the row's detail calls the noise.
    """
    reference, precise = as_array(wanted).astype(np.float64), as_array(exact).astype(np.float64)
    if _mismatch(found, as_array(wanted), wanted.dtype) is not None:
        return row
    if reference.shape != precise.shape or not np.isfinite(precise).all() or not np.isfinite(found).all():
        return row
    change = np.abs(reference - precise)
    noise = calmest_slice(np.where(np.isnan(change), 0.0, change))  # what overflowed there tells nothing of a rounding
    error = np.abs(found.astype(np.float64) - precise)
    scale = float(np.abs(precise).max(initial=0.0)) or 1.0
    if (error > np.minimum(factor * noise, limit * scale)).any():
        return row
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        worst = float(np.nan_to_num(error / noise, nan=0.0).max(initial=0.0))
    detail = f"{worst:.1f} x eager's own rounding error {name}"
    return replace(row, tolerance=f"{factor:g} x noise", ok=True, detail=detail)


def calmest_slice(noise: Array) -> Array:
    """For each value the largest noise in the calmest of the slices through it: its row, its column, its channel.

    Slices of fewer than eight values say too little; without any other, the whole array is the slice.

    Args:
        noise: Non-negative numbers of any shape.
    """
    result = np.full(noise.shape, noise.max(initial=0.0))
    for axis, size in enumerate(noise.shape):
        if size > 1 and noise.size >= _FEWEST * size:
            others = tuple(other for other in range(noise.ndim) if other != axis)
            result = np.minimum(result, noise.max(axis=others, keepdims=True))
    return result


def is_close(found: Array, wanted: Array) -> Array:
    """Marks the values that are right within the default tolerance, for arrays of one shape."""
    if wanted.dtype.kind != "f":
        equal: Array = found == wanted
        return equal
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        # Beside an infinity, the tolerance is infinite: nothing but the same infinity is near it.
        near: Array = np.isfinite(b) & (np.abs(a - b) <= allowance(wanted)) | (a == b) | (np.isnan(a) & np.isnan(b))
    return near


def allowance(wanted: Array) -> Array:
    """The default tolerance of each of these floating-point values."""
    dtype = _DTYPES.get(wanted.dtype.name, torch.float32)
    return _limits(wanted.astype(np.float64), RTOL[dtype], ATOL[dtype])


def _limits(wanted: Array, rtol: float, atol: float, *, is_own: bool = False) -> Array:
    """The tolerance of each value; the caller's own is relative to the whole output's magnitude."""
    with np.errstate(invalid="ignore"):  # no part of an infinity is a number
        limits: Array = rtol * np.abs(wanted) + atol * (_typical_magnitude(wanted) if is_own else _magnitudes(wanted))
    if is_own or rtol > RTOL[torch.float32]:
        return limits
    finite = wanted[np.isfinite(wanted)]
    if finite.size and np.abs(finite).max() < EXACT and (4 * finite == np.round(4 * finite)).all():
        limits = np.minimum(limits, OFF_QUARTERS)
    return limits


def _magnitudes(wanted: Array) -> Array:
    """How large values are where each of them stands: in the whole, its column or its channel.

    A confidence beside the places of pixels is a hundredth of them, and rounded as a number of its own size.
    """
    whole = _typical_magnitude(wanted)
    result = np.full(wanted.shape, whole)
    for axis in {1, wanted.ndim - 1} if wanted.ndim > 1 else ():
        count = wanted.shape[axis]
        if not 1 < count <= _MOST_SLICES or wanted.size < _FEWEST * count:
            continue
        slices = np.moveaxis(wanted, axis, 0).reshape(count, -1)
        found = np.array([max(_typical_magnitude(one, whole), SMALLEST_SLICE * whole) for one in slices])
        result = np.minimum(result, found.reshape([count if a == axis else 1 for a in range(wanted.ndim)]))
    return result


def _is_comparable(dtype: torch.dtype) -> bool:
    """Whether numpy, or a tolerance, knows the element type: not float8, float4 or quantized ones."""
    if dtype.is_floating_point:
        return dtype in RTOL
    try:
        torch.empty(0, dtype=dtype).numpy()
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


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
    detail = f"{wrong} of {reference.size} values differ" if wrong else "" if reference.size else UNCOMPARED
    return Comparison(case, output, max_abs, max_rel, "equal", wrong == 0, detail)


def _extremes(difference: Array, reference: Array) -> tuple[float, float]:
    max_abs = float(difference.max(initial=0.0))
    scale = float(np.abs(reference).max(initial=0.0))
    return max_abs, max_abs / scale if scale else max_abs


def _typical_magnitude(values: Array, otherwise: float = 1.0) -> float:
    """The median magnitude of those that are finite and not 0, without what is repeated over and over."""
    magnitudes = np.abs(values[np.isfinite(values)])
    magnitudes = magnitudes[magnitudes > 0]
    if not magnitudes.size:
        return otherwise
    median = _median(magnitudes)
    others = magnitudes[magnitudes != median]
    is_sentinel = magnitudes.size - others.size > SENTINELS * magnitudes.size
    return min(median, _median(others)) if is_sentinel and others.size else median


def _median(values: Array) -> float:
    """The median; numpy's own loads numpy.ma, a fifth of a second."""
    low, high = (values.size - 1) // 2, values.size // 2
    ordered = np.partition(values, (low, high))
    return float(ordered[low] / 2 + ordered[high] / 2)  # the sum of two of 1e308 is infinite


def _describe_worst(a: Array, b: Array, difference: Array, allowed: Array) -> str:
    where = int(np.argmax(difference - allowed))
    wrong = int((difference > allowed).sum())
    return f"{wrong} of {a.size} values differ, e.g. {a.flat[where]:.6g} for {b.flat[where]:.6g}"


def as_array(tensor: Tensor) -> Array:
    """A tensor's values; bfloat16 and float8 ones, which numpy lacks, widened to float32, complex ones as pairs."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype is torch.bfloat16 or (tensor.is_floating_point() and tensor.element_size() == 1):
        tensor = tensor.float()
    array: Array = tensor.resolve_conj().resolve_neg().contiguous().numpy()
    return array
