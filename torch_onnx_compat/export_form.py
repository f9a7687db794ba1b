"""Models that return something else while they are exported: what they return then is what their file is held against.

A model may ask ``torch.onnx.is_in_onnx_export()`` or ``torch.jit.is_tracing()``, and leave out what only training
needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from torch_onnx_compat.inputs import tree
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.prepare import Prepared


@contextmanager
def announce_export() -> Iterator[None]:
    """While active, whoever asks is told that an export is running, as a model is inside of torch's exporters."""
    asked = {id(function) for function in (torch.onnx.is_in_onnx_export, vars(torch.jit)["is_tracing"])}
    before = [
        (names, name, function)
        for module in list(sys.modules.values())
        for names in [getattr(module, "__dict__", {})]
        for name in ("is_in_onnx_export", "is_tracing")
        if id(function := names.get(name)) in asked
    ]
    try:
        for names, name, _ in before:
            names[name] = _yes
        yield
    finally:
        for names, name, function in before:
            names[name] = function


def _yes() -> bool:
    return True


def find_export_form(prepared: Prepared) -> Prepared | None:
    """The model, with a note of what it leaves out, if it returns other outputs when it is told of an export.

    Args:
        prepared: The model.

    Returns:
        None where it returns the same.
    """
    usual = _outputs(prepared)
    with announce_export():
        exported = _outputs(prepared)
    if exported is None or usual is None or exported == usual:
        return None
    left_out = [name for name in usual if name not in exported] or usual
    note = (
        f"while it is exported, the model itself returns {', '.join(exported)} and not {', '.join(left_out)}: the file "
        f"was compared with that."
    )
    return replace(prepared, notes=(*prepared.notes, note))


def _outputs(prepared: Prepared) -> list[str] | None:
    try:
        reference = Observation(prepared).reference("example", prepared.inputs)
    except ModelRefused:
        return None
    return [tree.qualified_name(("output", *path)) for path in reference.paths]
