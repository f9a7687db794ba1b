"""Torch's flag that an ONNX export is running, which models ask for with torch.onnx.is_in_onnx_export()."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_onnx_compat.backends.internals.find import first_module


@contextmanager
def in_onnx_export() -> Iterator[None]:
    """While active, `torch.onnx.is_in_onnx_export()` says True, as inside of torch's own exporters."""
    owner, name = _flag()
    before = getattr(owner, name)
    setattr(owner, name, True)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _flag() -> tuple[Any, str]:
    """Where the flag is; a torch without the dynamo exporter's own has that of the TorchScript exporter alone."""
    module = "torch.onnx._internal.exporter._flags"
    if importlib.util.find_spec(module) is not None:
        return importlib.import_module(module), "_is_onnx_exporting"
    exporter = first_module("torch.onnx._internal.torchscript_exporter._globals", "torch.onnx._globals")
    return exporter.GLOBALS, "in_onnx_export"
