"""For tests of entries, this project's and a plugin's: export a model and hold the file against eager torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import Entry, Exactness, Exporter
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
    extra = [entry_of(item) for item in (*options.get("symbolics", ()), *options.get("rewrites", ()))]
    known = {e.name: e for e in (*catalogue(), *extra)}
    options.setdefault("verify", _verify([known[name] for name in uses]))
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
