"""Sonos tract."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import tract


def version() -> str:
    """Version of the engine."""
    return metadata.version("tract")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    model = tract.onnx().load(path)
    names = [model.input_name(index) for index in range(model.input_count())]
    runnable = model.into_model().into_runnable()
    return lambda feeds: [tensor.to_numpy() for tensor in runnable.run([feeds[name] for name in names])]
