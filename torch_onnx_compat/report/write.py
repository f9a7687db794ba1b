"""Writes a report in the form that the file's name asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_onnx_compat.check.localisation import Localisation
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.report.facts import of_failure, of_result
from torch_onnx_compat.report.markdown import markdown
from torch_onnx_compat.report.page import page
from torch_onnx_compat.report.stock import Before
from torch_onnx_compat.result import ExportResult


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=True)


_FORMS: dict[str, Callable[[dict[str, Any]], str]] = {".html": page, ".md": markdown, ".json": _json}


def write_report(
    path: str | os.PathLike[str],
    subject: ExportResult | CompatError,
    comparison: Localisation | None = None,
    without: Before | None = None,
) -> Path:
    """Writes a report about an export.

    Args:
        path: Where to; the ending says how: .html, .md or .json.
        subject: What export_compat returned or raised.
        comparison: What localise() found, for the error of each layer; a failed verification brings its own.
        without: What torch makes of the model alone, for the changes before and after.

    Returns:
        The path.

    Raises:
        CompatError: The ending is none of these, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix not in _FORMS:
        raise CompatError(f"report {str(path)!r}: the ending is {path.suffix!r}; wanted {', '.join(_FORMS)}.")
    if isinstance(subject, ExportResult):
        facts = of_result(subject, comparison, without)
    else:
        facts = of_failure(subject, comparison)
    try:
        path.write_text(_FORMS[path.suffix](facts), encoding="utf-8")
    except OSError as error:
        raise CompatError(f"report {str(path)!r} cannot be written: {error.strerror}.") from error
    return path
