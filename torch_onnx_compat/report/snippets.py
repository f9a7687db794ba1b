"""How to run a file, in a few lines for each engine."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from torch_onnx_compat.shape_ranges import ShapeRange, tensorrt_command

_TYPES = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}

_ONNXRUNTIME = """import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("{file}", providers=["CPUExecutionProvider"])
outputs = session.run(None, {{{feeds}}})
"""

_OPENCV = """import cv2
import numpy as np

net = cv2.dnn.readNetFromONNX("{file}")
{setters}
outputs = net.forward(net.getUnconnectedOutLayersNames())
"""

_OPENVINO = """import numpy as np
import openvino

network = openvino.Core().read_model("{file}")
{bounds}model = openvino.compile_model(network, "CPU")
outputs = model({{{feeds}}})
"""


def snippet(
    target: str, file: str, model: onnx.ModelProto | None, ranges: Mapping[str, ShapeRange] | None = None
) -> str:
    """Code that runs a file, or the command line that builds it; both run as they stand.

    Args:
        target: Name of the engine.
        file: Name of the file.
        model: The file's graph, for the names and shapes of its inputs.
        ranges: The shapes of the inputs that have dynamic axes; where they are not known, the code has size 1 there.
    """
    known = ranges or {}
    weights = {tensor.name for tensor in model.graph.initializer} if model else set()
    inputs = [value for value in model.graph.input if value.name not in weights] if model else []
    command = tensorrt_command(target, file, known, [value.name for value in inputs])
    if command is not None:
        return f"{command}\n"
    arrays = [(value.name, _array(value, known.get(value.name))) for value in inputs]
    feeds = ", ".join(f'"{name}": {array}' for name, array in arrays)
    setters = "\n".join(f'net.setInput({array}, "{name}")' for name, array in arrays)
    template = _ONNXRUNTIME
    for name, other in (("opencv", _OPENCV), ("openvino", _OPENVINO)):
        if target.startswith(name):
            template = other
    bounded = {value.name: _bounds(known[value.name]) for value in inputs if value.name in known}
    shapes = ", ".join(f'"{name}": {text}' for name, text in bounded.items())
    bounds = f"network.reshape({{{shapes}}})\n" if shapes else ""
    return template.format(file=file, feeds=feeds, setters=setters, bounds=bounds)


def _array(value: onnx.ValueInfoProto, shapes: ShapeRange | None) -> str:
    """An array of zeros of the usual shape, or with size 1 on dynamic axes."""
    kind = value.type.tensor_type
    shape = tuple(dim.dim_value or 1 for dim in kind.shape.dim) if shapes is None else shapes.usual
    return f"np.zeros({shape}, np.{_TYPES.get(kind.elem_type, 'float32')})"


def _bounds(shapes: ShapeRange) -> str:
    """The shape of an input as OpenVINO takes it, with the bounds of each dynamic axis."""
    pairs = zip(shapes.least, shapes.most, strict=True)
    return f"[{', '.join(str(a) if a == b else f'({a}, {b})' for a, b in pairs)}]"
