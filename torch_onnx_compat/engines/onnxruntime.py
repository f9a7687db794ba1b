"""Microsoft ONNX Runtime, CPU execution provider."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import onnxruntime


def version() -> str:
    """Version of the engine."""
    return str(onnxruntime.__version__)


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = int(os.environ.get("TORCH_ONNX_COMPAT_THREADS", "1"))
    option = "session.x64quantprecision"  # exact sums of eight-bit products, as torch_onnx_compat/session.py explains
    options.add_session_config_entry(option, "1")
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:  # not with weights that two layers share
        options.add_session_config_entry(option, "0")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: list(session.run(outputs, feeds))
