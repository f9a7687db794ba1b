"""What became of the entries that a caller gives for one call: which were never met, and where others were applied."""

from __future__ import annotations

from collections.abc import Sequence

from torch_onnx_compat.catalogue.entry import Entry, Rewrite, Symbolic
from torch_onnx_compat.catalogue.registry import DEFAULT, Registry
from torch_onnx_compat.errors import CompatError, VerificationError, with_lines
from torch_onnx_compat.plan import Plan


def own_entries(registry: Registry) -> list[Entry]:
    """The caller's entries for this call."""
    return [e for e in registry if e.name not in DEFAULT or DEFAULT[e.name] is not e]


def notes_on_unused(entries: Sequence[Entry], plans: Sequence[Plan]) -> list[str]:
    """Says which entries had nothing to do in any plan, and why.

    Args:
        entries: The caller's.
        plans: Those of the exports that were tried.
    """
    met = {note.entry for plan in plans for note in plan.notes}
    return [_why_unused(entry, plans) for entry in entries if plans and entry.name not in met]


def _why_unused(entry: Entry, plans: Sequence[Plan]) -> str:
    what = f"entry {entry.name!r}, given for this call, was not used"
    if not any(entry.name in plan.armed for plan in plans):
        reason = next((plan.skipped[entry.name] for plan in plans if entry.name in plan.skipped), "")
        remedy = "" if reason == "excluded" else f"; include=[{entry.name!r}] applies it whether needed or not"
        return f"{what}: {reason}{remedy}."
    if isinstance(entry, Symbolic):
        return f"{what}: the model calls no operator {entry.op!r}."
    assert isinstance(entry, Rewrite)
    return f"{what}: the model has nothing that it replaces, {entry.replaces}."


def with_applied(error: CompatError, entries: Sequence[Entry], plan: Plan) -> CompatError:
    """Adds to the error of a wrong file where entries of the caller's were applied, which may be what is wrong.

    Args:
        error: The error of an attempt.
        entries: The caller's.
        plan: The plan of this attempt.
    """
    names = {entry.name for entry in entries}
    applied = [note for note in plan.notes if note.entry in names and note.verdict == "applied"]
    if not isinstance(error, VerificationError) or not applied:
        return error
    line = f"entries of this call took part, and may be what is wrong: {'; '.join(map(str, applied))}."
    return with_lines(error, [line])
