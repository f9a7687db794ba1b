"""Tencent's ncnn, CPU, in float32; pnnx converts the ONNX file."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib import metadata
from typing import Any

import ncnn
import numpy as np

_INPUT = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\(\w+\.numpy\(\), batch_index=(\d+)\)')
_OUTPUT = re.compile(r'ex\.extract\("(\w+)"\)\s+out\.append\(torch\.from_numpy\(\w+\.numpy\(batch_index=(\d+)\)')
_WIDTHS = {"int64": np.int32, "bool": np.int32, "float64": np.float32, "float16": np.float32}
"""The types in which ncnn gets numbers. It would read past the end of an array of halves: it takes them for floats."""


def version() -> str:
    """Version of the engine."""
    return metadata.version("ncnn")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs; integers are 32 bits wide."""
    net = ncnn.Net()
    net.opt.num_threads = int(os.environ.get("TORCH_ONNX_COMPAT_THREADS", "1"))
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    with tempfile.TemporaryDirectory(dir=".") as folder:  # in the folder of this process, which is removed with it
        script = _convert(path, folder)
        if net.load_param(os.path.join(folder, "m.ncnn.param")) or net.load_model(os.path.join(folder, "m.ncnn.bin")):
            raise RuntimeError(f"no such layer: {_unknown_layers(os.path.join(folder, 'm.ncnn.param'))}")
    input_blobs, output_blobs = _INPUT.findall(script), _OUTPUT.findall(script)
    if len(input_blobs) != len(feeds) or len(output_blobs) != len(outputs):
        raise RuntimeError(
            f"pnnx kept {len(input_blobs)} of {len(feeds)} inputs and {len(output_blobs)} of {len(outputs)} outputs"
        )

    def run(feeds: dict[str, Any]) -> list[Any]:
        with net.create_extractor() as extractor:
            for (name, batch), array in zip(input_blobs, feeds.values(), strict=True):
                array = np.ascontiguousarray(array, _WIDTHS.get(str(array.dtype), array.dtype))
                extractor.input(name, ncnn.Mat(array, batch_index=int(batch)).clone())
            return [_extract(extractor, name, int(batch)) for name, batch in output_blobs]

    return run


def _convert(path: str, folder: str) -> str:
    """Converts a file; returns the Python code that pnnx writes beside it, which tells how tensors lose their batch."""
    spec = importlib.util.find_spec("pnnx")  # importing it needs torch
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = os.path.abspath(folder)
    model = os.path.join(folder, "m.onnx")
    _link(path, model)
    with open(path, "rb") as file:
        told = file.read()
    for beside in os.scandir(os.path.dirname(path)):  # weights; pnnx refuses those that a symbolic link leads to
        if beside.is_file() and beside.path != path and beside.name.encode() in told:
            _link(beside.path, os.path.join(folder, beside.name))
    program = os.path.join(spec.submodule_search_locations[0], "pnnx")
    done = subprocess.run([program, model, "fp16=0"], cwd=folder, capture_output=True, text=True, errors="replace")
    script = os.path.join(folder, "m_ncnn.py")
    if done.returncode or not os.path.exists(script):
        raise RuntimeError(f"pnnx ends with {done.returncode}: {done.stderr[-200:]}")
    with open(script, encoding="utf-8") as file:
        return file.read()


def _link(path: str, to: str) -> None:
    try:
        os.link(path, to)
    except OSError:  # another file system
        shutil.copyfile(path, to)


def _unknown_layers(path: str) -> str:
    """Layers that ncnn does not have: pnnx writes operators that it cannot convert unchanged."""
    with open(path, encoding="utf-8") as file:
        kinds = {line.split()[0] for line in file.read().splitlines()[2:] if line.strip()}
    return ", ".join(sorted(kind for kind in kinds if ncnn.layer_to_index(kind) < 0))


def _extract(extractor: Any, name: str, batch: int) -> Any:
    failed, mat = extractor.extract(name)
    if failed:
        raise RuntimeError(f"extract({name}) returns {failed}")
    return np.array(mat.numpy(batch_index=batch))
