"""Models that ask whether they are exported: what their files are held against, and what such a model is told.

A model may ask ``torch.onnx.is_in_onnx_export()`` or ``torch.jit.is_tracing()``, and leave out what only training
needs. What it returns then is what its file is held against. One that computes something else then, of the same form,
is told that no export is running.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from torch_onnx_compat.inputs import tree
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.prepare import Prepared


@dataclass(frozen=True)
class ExportForm:
    """How a model is exported that asks whether it is.

    Attributes:
        prepared: The model, with a note of what this gives up.
        answer: While active, the model is told so.
    """

    prepared: Prepared
    answer: Callable[[], AbstractContextManager[None]]


def find_export_form(prepared: Prepared) -> ExportForm | None:
    """What is left to try with a model whose file is not right; None where it does not ask.

    Args:
        prepared: The model.
    """
    usual = _outputs(prepared)
    if usual is None:
        return None
    with announce_export():
        exported = _outputs(prepared)
    if exported is not None and exported != usual:
        left_out = [name for name in usual if name not in exported] or usual
        note = (
            f"while it is exported, the model itself returns {', '.join(exported)} and not {', '.join(left_out)}: the "
            f"file was compared with that."
        )
        return ExportForm(_with_note(prepared, note), announce_export)
    places: dict[str, None] = {}
    with _replaced({"is_in_onnx_export": (torch.onnx.is_in_onnx_export, _noting(places))}):
        _outputs(prepared)
    if not places:
        return None
    note = (
        f"the model asks torch.onnx.is_in_onnx_export() ({', '.join(places)}), and its file was not right where that "
        f"says True: it was told that no export is running."
    )
    return ExportForm(_with_note(prepared, note), deny_export)


def announce_export() -> AbstractContextManager[None]:
    """While active, whoever asks is told that an export is running, as a model is inside of torch's exporters."""
    is_tracing = vars(torch.jit)["is_tracing"]
    return _replaced({"is_in_onnx_export": (torch.onnx.is_in_onnx_export, _yes), "is_tracing": (is_tracing, _yes)})


def deny_export() -> AbstractContextManager[None]:
    """While active, whoever asks for an ONNX export is told that none is running; torch itself does not ask so."""
    return _replaced({"is_in_onnx_export": (torch.onnx.is_in_onnx_export, _no)})


@contextmanager
def _replaced(functions: Mapping[str, tuple[Any, Callable[[], bool]]]) -> Iterator[None]:
    """While active, functions are others in every module that has them under their own names."""
    before = [
        (names, name, function, other)
        for module in list(sys.modules.values())
        for names in [getattr(module, "__dict__", {})]
        for name, (function, other) in functions.items()
        if names.get(name) is function
    ]
    try:
        for names, name, _, other in before:
            names[name] = other
        yield
    finally:
        for names, name, function, _ in before:
            names[name] = function


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


def _noting(places: dict[str, None]) -> Callable[[], bool]:
    """Says that no export is running, and notes the statements of the model that ask."""

    def answer() -> bool:
        frame = sys._getframe(1)
        if is_user_file(frame.f_code.co_filename):
            places[short(frame.f_code.co_filename, frame.f_lineno)] = None
        return False

    return answer


def _with_note(prepared: Prepared, note: str) -> Prepared:
    return replace(prepared, notes=(*prepared.notes, note))


def _outputs(prepared: Prepared) -> list[str] | None:
    try:
        reference = Observation(prepared).reference("example", prepared.inputs)
    except ModelRefused:
        return None
    return [tree.qualified_name(("output", *path)) for path in reference.paths]
