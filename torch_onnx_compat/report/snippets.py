"""How to run a file, in a few lines for each engine."""

from __future__ import annotations

import onnx

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

model = openvino.compile_model("{file}", "CPU")
outputs = model({{{feeds}}})
"""

_TENSORRT = "trtexec --onnx={file} --saveEngine={file}.engine\n"


def snippet(target: str, file: str, model: onnx.ModelProto | None) -> str:
    """Code that runs a file.

    Args:
        target: Name of the engine.
        file: Name of the file.
        model: The file's graph, for the names and shapes of its inputs.
    """
    weights = {tensor.name for tensor in model.graph.initializer} if model else set()
    inputs = [_array(value) for value in model.graph.input if value.name not in weights] if model else []
    feeds = ", ".join(f'"{name}": {array}' for name, array in inputs)
    setters = "\n".join(f'net.setInput({array}, "{name}")' for name, array in inputs)
    template = _ONNXRUNTIME
    for name, other in (("opencv", _OPENCV), ("openvino", _OPENVINO), ("tensorrt", _TENSORRT)):
        if target.startswith(name):
            template = other
    return template.format(file=file, feeds=feeds, setters=setters)


def _array(value: onnx.ValueInfoProto) -> tuple[str, str]:
    """A name, and an array of zeros with size 1 on dynamic axes."""
    kind = value.type.tensor_type
    shape = tuple(dim.dim_value or 1 for dim in kind.shape.dim)
    return value.name, f"np.zeros({shape}, np.{_TYPES.get(kind.elem_type, 'float32')})"
