"""Writes a report in the form that the file's name asks for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from torch_onnx_compat.check.compatibility import operator_groups
from torch_onnx_compat.check.localisation import Localisation
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.loading import load_graph, load_proto
from torch_onnx_compat.report.facts import of_failure, of_file, of_result
from torch_onnx_compat.report.markdown import markdown
from torch_onnx_compat.report.page import page
from torch_onnx_compat.report.stock import Before
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.targets import Target


def _json(facts: dict[str, Any]) -> str:
    told = {key: value for key, value in facts.items() if key not in ("whole", "file")}  # the file has them itself
    return json.dumps(told, indent=2, allow_nan=True)


_FORMS: dict[str, Callable[[dict[str, Any]], str]] = {".html": page, ".md": markdown, ".json": _json}


def write_report(
    path: str | os.PathLike[str],
    subject: ExportResult | CompatError,
    comparison: Localisation | None = None,
    without: Before | None = None,
    modules: Collection[str] = (),
) -> Path:
    """Writes a report about an export.

    Args:
        path: Where to; the ending says how: .html, .md or .json.
        subject: What export_compat returned or raised.
        comparison: What localise() found, for the error of each layer; a failed verification brings its own.
        without: What torch makes of the model alone, for the changes before and after.
        modules: Paths of the model's modules, by which the changes are found in the graph.

    Returns:
        The path.

    Raises:
        CompatError: The ending is none of these, or the file cannot be written.
    """
    form = _form_of(Path(path))
    if isinstance(subject, ExportResult):
        facts = of_result(subject, comparison, without, modules)
    else:
        facts = of_failure(subject, comparison)
    return _write(Path(path), form(facts | {"file": _link(Path(path), getattr(subject, "path", None))}))


def report_on_file(path: Path, file: Path, target: Target, comparison: Localisation | None = None) -> Path:
    """Writes a report about an ONNX file that is there, made by whatever tool.

    Args:
        path: Where to; the ending says how: .html, .md or .json.
        file: The file.
        target: The engine that is to run it.
        comparison: What localise() found between it and a model.

    Returns:
        The path.

    Raises:
        CompatError: The ending is none of these, the file is no ONNX file, or the report cannot be written.
    """
    form = _form_of(path)
    groups, proto = operator_groups(load_graph(file), target), load_proto(file)
    return _write(path, form(of_file(file, proto, target, groups, comparison) | {"file": _link(path, file)}))


def _link(report: Path, file: Path | None) -> str:
    """The way from the report to the file; empty where there is none, as between two drives."""
    try:
        return os.path.relpath(file.resolve(), report.resolve().parent).replace(os.sep, "/") if file else ""
    except ValueError:
        return ""


def _form_of(path: Path) -> Callable[[dict[str, Any]], str]:
    if path.suffix not in _FORMS:
        raise CompatError(f"report {str(path)!r}: the ending is {path.suffix!r}; wanted {', '.join(_FORMS)}.")
    return _FORMS[path.suffix]


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompatError(f"report {str(path)!r} cannot be written: {error.strerror}.") from error
    return path
