"""Apache TVM, CPU, by its Relax importer, untuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def version() -> str:
    """Version of the engine."""
    return str(tvm.__version__)


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    module = from_onnx(onnx.load(path))
    names = [value.name for value in module["main"].params]
    machine = relax.VirtualMachine(tvm.compile(module, target=tvm.target.Target("llvm")), tvm.cpu())

    def run(feeds: dict[str, Any]) -> list[Any]:
        found = machine["main"](*(tvm.runtime.tensor(feeds[name]) for name in names))
        return [_array(value) for value in (found if len(outputs) > 1 else [found])]

    return run


def _array(value: Any) -> Any:
    """The values of a tensor, or of a shape, for which Relax has a type of its own."""
    return value.numpy() if hasattr(value, "numpy") else np.array(list(value), np.int64)
