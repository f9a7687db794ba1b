"""The error that refuses a decision, and the place in the model's code that it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames, frames_of_model


class RefusedDecision(ExportFailed):
    """A decision has no equivalent; the message begins with its place.

    Attributes:
        place: ``models/net.py:41``.
    """

    place: str = ""


class UnequalBranches(RefusedDecision):
    """The branches of a decision do not fit together, or one of them does not run, at the sizes of the trace."""


class EndlessRecursion(RefusedDecision):
    """A function calls itself as often as the inputs decide; whatever is tried around it meets it again."""


_kept: ContextVar[list[RefusedDecision] | None] = ContextVar("refusals", default=None)


def here() -> tuple[str, int]:
    """File and line of the model's code that called the run-time module."""
    outside = (f for f in frames() if not str(f.f_globals.get("__name__", "")).startswith("torch_onnx_compat."))
    frame = next(outside)
    return frame.f_code.co_filename, frame.f_lineno


def place_in_model() -> str:
    """The model's statement that is running; a call of torch may lie between it and the run-time module."""
    places = ((f.f_code.co_filename, f.f_lineno) for f in frames_of_model() if is_user_file(f.f_code.co_filename))
    return short(*next(places, here()))


def refusal(reason: str, place: str = "", kind: type[RefusedDecision] = RefusedDecision) -> RefusedDecision:
    """The error that refuses the present decision; `keep_refusals` keeps it.

    Args:
        reason: Why.
        place: Where; the decision's place by default.
        kind: Of error.
    """
    place = place or short(*here())
    error = kind(f"{place}: {reason}")
    error.place = place
    kept = _kept.get()
    if kept is not None:
        kept.append(error)
    return error


@contextmanager
def keep_refusals(refusals: list[RefusedDecision]) -> Iterator[None]:
    """While active, every error that `refusal` makes is added to a list; the model may catch it."""
    token = _kept.set(refusals)
    try:
        yield
    finally:
        _kept.reset(token)
