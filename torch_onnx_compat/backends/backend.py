"""What goes into an exporter and what comes out, the same for both."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.plan import Plan


class ExportFailed(UnsupportedError):
    """An exporter refused the model, or froze something that should vary."""


@dataclass(frozen=True)
class Job:
    """One export."""

    subject: Subject
    inputs: Inputs
    """With every dynamic axis at least 3 long."""
    plan: Plan
    opset: int
    """The opset that the exporter should write if it can; the result says which it wrote."""
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    allow_baked: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of torch.onnx.export that mean something to one exporter only."""


@dataclass
class Raw:
    """What an exporter made: the graph, its true opset, and what the user should know."""

    model: ir.Model
    notes: list[str] = field(default_factory=list)
    renamed_axes: dict[str, str] = field(default_factory=dict)
    """Symbols of the graph that stand for the caller's axis names."""


_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def readable(error: BaseException) -> str:
    """The one line of an exporter's error that says what happened, without colours and graph dumps."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    cause = chain[-1]
    lines = [line.strip() for line in _ANSI.sub("", str(cause)).splitlines()]
    text = next((line for line in lines if line and not line.startswith(("#", "graph("))), type(cause).__name__)
    place = user_statement(cause) or user_statement(error)
    return f"{text[:500]}{f' (at {place})' if place else ''}"


def user_statement(error: BaseException) -> str | None:
    """file:line of the innermost statement of the model's own code in a traceback, or in an exporter's message."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_user_file(frame.filename):
            return f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno}"
    found = re.findall(r'File "([^"]+)", line (\d+)', _ANSI.sub("", str(error)))
    for filename, line in reversed(found):
        if is_user_file(filename):
            return f"{'/'.join(filename.split('/')[-2:])}:{line}"
    return None


def is_user_file(filename: str) -> bool:
    """Whether a file is neither torch, nor an exporter, nor this package's machinery."""
    parts = filename.replace("\\", "/")
    return not any(f"/{p}/" in parts for p in ("torch", "torch_onnx_compat", "onnxscript", "onnx_ir")) and not parts.startswith("<")
