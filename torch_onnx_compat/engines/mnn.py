"""Alibaba MNN, CPU, in float32.

MNN.tools is not imported: it installs a logging package with whatever pip is on the path, and reports each conversion.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib import metadata
from typing import Any

import _tools
import MNN.expr
import MNN.nn
import numpy as np

_READ = {"float32": MNN.expr.float, "float64": MNN.expr.float, "uint8": MNN.expr.uint8, "int8": MNN.expr.int8}


def version() -> str:
    """Version of the engine."""
    return metadata.version("MNN")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs; integers are 32 bits wide."""
    with tempfile.TemporaryDirectory(dir=".") as folder:  # in the folder of this process, which is removed with it
        converted = os.path.join(folder, "model.mnn")
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", converted, "--bizCode", "x"])
        net = MNN.nn.load_module_from_file(converted, list(feeds), outputs, precision_mode=MNN.expr.PrecisionMode.High)

    def run(feeds: dict[str, Any]) -> list[Any]:
        found = net.onForward([_to_variable(array) for array in feeds.values()])
        if len(found) != len(outputs):
            raise RuntimeError(f"{len(found)} outputs instead of {len(outputs)}")
        return [_to_array(value) for value in found]

    return run


def _to_variable(array: Any) -> Any:
    kind = _READ.get(str(array.dtype), MNN.expr.int)
    wide = np.float32 if kind == MNN.expr.float else array.dtype if kind != MNN.expr.int else np.int32
    array = np.ascontiguousarray(array.astype(wide))
    return MNN.expr.const(array, list(array.shape), MNN.expr.NCHW, kind)


def _to_array(value: Any) -> Any:
    if len(value.shape) > 1:
        value = MNN.expr.convert(value, MNN.expr.NCHW)
    return np.array(value.read()).reshape(value.shape)
