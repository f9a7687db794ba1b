"""For tests of entries, this project's and a plugin's: export a model and hold the file against eager torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import Entry, Exactness, Exporter
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.export import export_compat
from torch_onnx_compat.registry import entry_of
from torch_onnx_compat.result import ExportResult

ROUNDINGS = 64
"""How many units in the last place a ROUNDING entry may be off in a test, relative to the value and its neighbours."""


def assert_same_outputs(
    model: Any,
    args: Any,
    exporter: Exporter,
    *,
    uses: Sequence[str] = (),
    dynamic: str | Mapping[str, Any] | None = None,
    opset: int | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    kwargs: Mapping[str, Any] | None = None,
    samples: Sequence[Any] = (),
    **options: Any,
) -> ExportResult:
    """Exports a model in memory and compares the file with eager torch on the original.

    The tolerance is not the test's to choose: it follows from the exactness of the entries in `uses`, and from the
    whole-model default where there are none.

    Args:
        model: A module or function.
        args: Its example inputs.
        exporter: Back end.
        uses: Entries that must have been applied.
        dynamic: As for export_compat.
        opset: Opset of the file; the target's preferred one by default.
        include: As for export_compat.
        exclude: As for export_compat.
        kwargs: As for export_compat.
        samples: As for export_compat.
        **options: Further keywords of export_compat.

    Returns:
        The result.

    Raises:
        VerificationError: A value is off.
        AssertionError: An entry in `uses` was not applied.
    """
    options.setdefault("verify", _verify([_entry(name, options) for name in uses]))
    result = export_compat(
        model,
        args,
        kwargs=kwargs,
        exporter=exporter,
        dynamic=dynamic,
        opset_version=opset,
        include=include,
        exclude=exclude,
        samples=samples,
        **options,
    )
    applied = {note.entry for note in result.applied}
    missing = [name for name in uses if name not in applied]
    assert not missing, f"not applied: {', '.join(missing)}\n{result}"
    return result


def assert_entry(name: str, model: Any, args: Any, exporter: Exporter, **options: Any) -> ExportResult:
    """Checks that the file is right, and that an entry was applied exactly where it is needed.

    Args:
        name: The entry, of the catalogue or of `symbolics` and `rewrites`.
        model: A module or function that calls what the entry stands for.
        args: Its example inputs.
        exporter: Back end.
        **options: As for assert_same_outputs.

    Returns:
        The result.

    Raises:
        VerificationError: A value is off.
        AssertionError: The entry was not applied though this exporter needs it, or was applied though it does not.
    """
    needed = _is_needed(name, exporter, options)
    result = assert_same_outputs(model, args, exporter, uses=(name,) if needed else (), **options)
    assert needed or name not in {note.entry for note in result.applied}, f"{name} is not needed on {exporter}"
    return result


def assert_still_needed(name: str, model: Any, args: Any, exporter: Exporter, **options: Any) -> None:
    """Checks an entry's `needed_on` against today's torch, by leaving the entry out.

    Args:
        name: The entry, of the catalogue or of `symbolics` and `rewrites`.
        model: A module or function that calls what the entry stands for.
        args: Its example inputs.
        exporter: Back end.
        **options: As for assert_same_outputs.

    Raises:
        AssertionError: The export is right without the entry, though this exporter is said to need it; of an entry
            that is said to serve always, right and no larger.
        CompatError: The export fails without the entry, though this exporter is said not to need it.
    """
    try:
        without = {**options, "exclude": [name, *options.get("exclude", ())]}
        stock = assert_same_outputs(model, args, exporter, **without)
    except CompatError:
        if not _is_needed(name, exporter, options):
            raise
        return
    if _entry(name, options).need.always:  # it may also serve to make the file smaller
        ours = assert_same_outputs(model, args, exporter, **options)
        assert ours.nodes.total() < stock.nodes.total(), f"no smaller with {name} on {exporter}"
        return
    assert not _is_needed(name, exporter, options), f"torch {torch.__version__} is right without {name} on {exporter}"


def _is_needed(name: str, exporter: Exporter, options: Mapping[str, Any]) -> bool:
    need = _entry(name, options).need
    return need.always or exporter in need.exporters


def _entry(name: str, options: Mapping[str, Any]) -> Entry:
    """The entry of that name among those of this call and those of the catalogue."""
    extra = [entry_of(item) for item in (*options.get("symbolics", ()), *options.get("rewrites", ()))]
    return next((entry for entry in extra if entry.name == name), None) or catalogue()[name]


def _verify(entries: Sequence[Entry]) -> Verify:
    if not entries:
        return Verify()
    worst = max(entries, key=lambda e: list(Exactness).index(e.exactness))
    if worst.exactness is Exactness.BITWISE:
        return Verify(rtol=0.0, atol=0.0)
    if worst.exactness is Exactness.APPROXIMATE:
        return Verify(rtol=worst.error, atol=worst.error)
    rounding = ROUNDINGS * torch.finfo(torch.float32).eps
    return Verify(rtol=rounding, atol=rounding)
