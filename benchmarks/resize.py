"""At how many heights a resize by a scale comes out wrong: torch.onnx.export's files and export_compat's.

Heights 5 to 200, the width is fixed. A file is wrong where its size is not eager torch's, or a value is 1e-3 off.

    python benchmarks/resize.py

results/resize.md is what it printed.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import io
import warnings
from collections.abc import Iterator

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor, nn
from torch.nn import functional

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.entry import EXPORTERS, Exporter

HEIGHTS = range(5, 201)
WIDTH = 33
PACKAGES = ("torch", "onnxruntime", "onnx")
MODES = ("nearest", "bilinear", "bicubic")
SCALES = (0.3, 0.7, 1.1, 2.0)


class Resize(nn.Module):
    def __init__(self, mode: str, scale: float) -> None:
        super().__init__()
        self.mode, self.scale = mode, scale

    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=self.scale, mode=self.mode)


def files(model: nn.Module) -> Iterator[bytes]:
    """Stock torch's, then ours, through each exporter."""
    x = torch.rand(1, 2, 40, WIDTH)
    for exporter in EXPORTERS:
        yield stock(model, x, exporter)
    for exporter in EXPORTERS:
        made = export_compat(model, (x,), exporter=exporter, dynamic={"x": {2: "height"}}).model_bytes
        assert made is not None
        yield made


def stock(model: nn.Module, x: Tensor, exporter: Exporter) -> bytes:
    """torch.onnx.export's file."""
    file = io.BytesIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if exporter == "dynamo":
            shapes = {"x": {2: torch.export.Dim.DYNAMIC}}
            torch.onnx.export(model, (x,), file, dynamo=True, dynamic_shapes=shapes, verbose=False)
        else:
            torch.onnx.export(model, (x,), file, dynamo=False, input_names=["x"], dynamic_axes={"x": {2: "height"}})
    return file.getvalue()


def wrong_heights(model: nn.Module, file: bytes) -> int:
    """At how many heights the file is wrong."""
    session = ort.InferenceSession(file)
    name = session.get_inputs()[0].name
    wrong = 0
    for height in HEIGHTS:
        x = torch.rand(1, 2, height, WIDTH)
        right, found = model(x).numpy(), session.run(None, {name: x.numpy()})[0]
        wrong += found.shape != right.shape or bool(np.abs(found - right).max() > 1e-3)
    return wrong


def main() -> None:
    """Prints a row for each mode and scale."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    print(f"{datetime.date.today()}, {versions}; wrong heights of {len(HEIGHTS)}, width {WIDTH}\n")
    ways = [f"{who}, {exporter}" for who in ("stock", "ours") for exporter in EXPORTERS]
    print("| mode, scale | " + " | ".join(ways) + " |")
    print("| --- |" + " --- |" * len(ways))
    for mode in MODES:
        for scale in SCALES:
            model = Resize(mode, scale)
            counts = [wrong_heights(model, file) for file in files(model)]
            print(f"| {mode}, {scale} | " + " | ".join(map(str, counts)) + " |", flush=True)


if __name__ == "__main__":
    main()
