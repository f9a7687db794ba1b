"""Compares an engine's outputs with onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_onnx_compat.engines.process import Outcome
from torch_onnx_compat.session import open_session
from torch_onnx_compat.targets.target import Verdict

Array = npt.NDArray[Any]
HALF = (1e-2, 1e-2)
"""Tolerance, relative and absolute, of numbers that two engines round to half after each of a few steps."""


def reference(model: str | bytes, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of onnxruntime."""
    found: list[Any] = list(open_session(model).run(None, dict(feeds)))
    if not all(isinstance(array, np.ndarray) for array in found):
        raise TypeError("an output is a sequence")
    return found


def judge(outcome: Outcome, wanted: Sequence[Array], tolerance: tuple[float, float]) -> tuple[Verdict, str]:
    """The verdict on a run, and the reason unless it works or is built with the right values.

    Args:
        outcome: The outcome of the run in the engine.
        wanted: onnxruntime's outputs.
        tolerance: Allowed difference relative to the value, and absolute for outputs of typical magnitude 1 or less;
            the absolute one grows with the magnitude.
    """
    if outcome.status == "unknown":
        return "unknown", outcome.error
    if outcome.status == "misread":
        return "wrong", outcome.error
    if outcome.status == "built" and not outcome.outputs:
        return "built", f"values not known: {outcome.error}"
    if outcome.status not in ("ran", "built"):
        return ("refused" if outcome.status == "refused" else "crashes"), outcome.error
    if len(outcome.outputs) != len(wanted):
        return "wrong", f"{len(outcome.outputs)} outputs, wanted {len(wanted)}"
    pairs = zip(outcome.outputs, wanted, strict=True)
    reason = next(filter(None, (difference(*pair, tolerance) for pair in pairs)), "")
    reason = reason or first_run_fault(outcome, tolerance)
    return ("wrong" if reason else "works" if outcome.status == "ran" else "built"), reason


def first_run_fault(outcome: Outcome, tolerance: tuple[float, float]) -> str:
    """How a file's first run differs from the next one, on the same inputs; empty if it does not."""
    reasons = (difference(a, b, tolerance) for a, b in zip(outcome.first, outcome.outputs, strict=False))
    return next((f"its first run is not like the next one: {reason}" for reason in reasons if reason), "")


def difference(found: Array, right: Array, tolerance: tuple[float, float]) -> str:
    """Describes the error of one output; empty if there is none."""
    if found.size == right.size == 1:
        found = found.reshape(right.shape)  # engines without tensors of rank 0
    if found.shape != right.shape:
        return f"shape {found.shape}, wanted {right.shape}"
    if right.dtype.kind not in "fc":
        with np.errstate(invalid="ignore"):  # NaN as an integer differs from engine to engine
            wrong = int((found.astype(np.int64) != right.astype(np.int64)).sum())
        return f"{wrong} of {right.size} values differ" if wrong else ""
    if right.dtype == np.float16:
        tolerance = max(tolerance[0], HALF[0]), max(tolerance[1], HALF[1])
    a, b = found.astype(np.float64), right.astype(np.float64)
    same = np.isfinite(a) == np.isfinite(b)
    finite = np.isfinite(a) & np.isfinite(b)
    if not same.all() or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "NaN or infinities stand elsewhere"
    a, b = a[finite], b[finite]
    if not a.size:
        return ""
    off = np.abs(a - b)
    allowed = tolerance[0] * np.abs(b) + tolerance[1] * max(1.0, float(np.median(np.abs(b))))
    return f"off by {off.max():.3g}" if (off > allowed).any() else ""
