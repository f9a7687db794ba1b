"""What goes into an exporter and what comes out, the same for both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError, UnsupportedError, causes
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.places import plain, user_statement
from torch_onnx_compat.plan import Plan


class ExportFailed(UnsupportedError):
    """An exporter refused the model, or froze something that should vary."""


@dataclass(frozen=True)
class ExportJob:
    """One export."""

    make_subject: Callable[[], Subject]
    """Makes a patched twin; each trace gets one of its own, since a forward may leave caches behind."""
    subject: Subject
    """The one that is exported."""
    inputs: Inputs
    """With every dynamic axis at least 3 long."""
    plan: Plan
    opset: int
    """The opset that the exporter should write if it can; the result says which it wrote."""
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    allow_baked: tuple[str, ...] = ()
    decides: Callable[[ExportJob], bool] | None = None
    """Tells whether the model takes a Python decision that may vary; costs two traces. None once such are masked."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of torch.onnx.export that mean something to one exporter only."""


@dataclass
class ExportedGraph:
    """What an exporter made: the graph, its true opset, and what the user should know."""

    model: ir.Model
    notes: list[str] = field(default_factory=list)
    renamed_axes: dict[str, str] = field(default_factory=dict)
    """Symbols of the graph that stand for the caller's axis names."""


def refuse(error: Exception, step: str) -> NoReturn:
    """Raises what an exporter's error comes to.

    Args:
        error: What the exporter raised.
        step: What it was doing.

    Raises:
        CompatError: The one among the causes, where an entry or a check of ours raised it.
        ExportFailed: Otherwise; the step and the line that says what happened.
    """
    for cause in causes(error, contexts=True):
        if isinstance(cause, CompatError):
            raise cause from cause.__cause__
    raise ExportFailed(f"{step}: {readable(error)}") from error


def readable(error: BaseException) -> str:
    """The one line of an exporter's error that says what happened, without colours and graph dumps."""
    *_, cause = causes(error)
    text = plain(str(cause)).partition(" [Caused by the value")[0]
    lines = [line.strip() for line in text.splitlines()]
    text = next((line for line in lines if line and not line.startswith(("#", "graph("))), type(cause).__name__)
    place = user_statement(cause) or user_statement(error)
    return f"{text[:500]}{f' (at {place})' if place else ''}"
