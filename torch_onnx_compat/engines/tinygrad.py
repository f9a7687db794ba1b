"""tinygrad, CPU; clang compiles its kernels, and ziglang provides clang where the machine has none."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from importlib import metadata
from typing import Any


def _use_zig() -> None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return
    script = os.path.abspath("clang")  # in the folder of this process, which is removed with it
    zig = os.path.join(spec.submodule_search_locations[0], "zig")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{zig}" clang "$@"\n')
    os.chmod(script, 0o755)
    os.environ["CC"] = script


os.environ["DEV"] = "CPU"
if shutil.which("clang") is None:
    _use_zig()

from tinygrad import Tensor  # noqa: E402 - it reads the environment when it is imported
from tinygrad.nn.onnx import OnnxRunner  # noqa: E402


def version() -> str:
    """Version of the engine."""
    return metadata.version("tinygrad")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    runner = OnnxRunner(path)

    def run(feeds: dict[str, Any]) -> list[Any]:
        found = runner({name: Tensor(array) for name, array in feeds.items()})
        return [found[name].numpy() for name in outputs]

    return run
