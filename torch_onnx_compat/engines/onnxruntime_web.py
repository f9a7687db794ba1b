"""onnxruntime-web, in WebAssembly under node."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_PACKAGE = os.path.join(sys.prefix, "node_modules", "onnxruntime-web")
_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime_web.mjs")
_node = subprocess.Popen(
    ["node", _SCRIPT, _PACKAGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
)


def version() -> str:
    """Version of the engine."""
    with open(os.path.join(_PACKAGE, "package.json"), encoding="utf-8") as file:
        return str(json.load(file)["version"])


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    _ask({"load": path})

    def run(feeds: dict[str, Any]) -> list[Any]:
        given = {name: _encode(array) for name, array in feeds.items()}
        return [_decode(tensor) for tensor in _ask({"run": given, "outputs": outputs})]

    return run


def _ask(job: dict[str, Any]) -> list[dict[str, Any]]:
    assert _node.stdin is not None
    assert _node.stdout is not None
    try:
        print(json.dumps(job), file=_node.stdin, flush=True)
        line = _node.stdout.readline()
    except BrokenPipeError:
        line = ""
    if not line:
        os._exit(1)  # node crashed, so this process reports a crash
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    found: list[dict[str, Any]] = answer["tensors"]
    return found


def _encode(array: Any) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"type": str(array.dtype), "dims": list(array.shape), "data": data}


def _decode(tensor: dict[str, Any]) -> Any:
    return np.frombuffer(base64.b64decode(tensor["data"]), tensor["type"]).reshape(tensor["dims"])
