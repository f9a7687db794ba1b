"""Intel OpenVINO, CPU plugin, in float32."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import openvino


def version() -> str:
    """Version of the engine."""
    return str(openvino.__version__).split("-")[0]


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    core = openvino.Core()
    threads = int(os.environ.get("TORCH_ONNX_COMPAT_THREADS", "1"))
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    compiled = core.compile_model(core.read_model(path), "CPU", settings)

    def run(feeds: dict[str, Any]) -> list[Any]:
        result = compiled({name: array for name, array in feeds.items() if _has(compiled, name)})
        return [result[compiled.output(name)] for name in outputs]

    return run


def _has(compiled: Any, name: str) -> bool:
    return any(name in port.get_names() for port in compiled.inputs)
