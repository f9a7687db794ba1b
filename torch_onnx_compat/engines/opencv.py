"""OpenCV's DNN module; variant "classic" takes the engine of OpenCV 4, else the new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

_NOT_FOUND = -204
"""OpenCV's code for an object that is not there."""


def version() -> str:
    """Version of the engine."""
    return str(cv2.__version__)


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    cv2.setNumThreads(int(os.environ.get("TORCH_ONNX_COMPAT_THREADS", "1")))
    engine = cv2.dnn.ENGINE_CLASSIC if variant == "classic" else cv2.dnn.ENGINE_NEW
    net = cv2.dnn.readNetFromONNX(path, engine=engine)

    def run(feeds: dict[str, Any]) -> list[Any]:
        for name, array in feeds.items():
            try:
                net.setInput(array, name)
            except cv2.error as error:
                if error.code != _NOT_FOUND:  # an input that nothing reads is dropped
                    raise
        return [np.zeros(0, np.float32) if array is None else array for array in net.forward(outputs)]

    return run
