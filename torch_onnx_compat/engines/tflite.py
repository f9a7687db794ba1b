"""TensorFlow Lite, CPU, in float32, its own operators alone; onnx2tf converts the ONNX file.

onnx2tf lays images out with the channels last. It is told to take inputs as they are (its option -kat); outputs of
three axes and more become rows by a Reshape, before which it restores ONNX's order of axes. Without -kat it would take
every input of three axes and more for an image.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata
from typing import Any

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import onnx
import onnx2tf
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

_SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""What onnx2tf tries images with, and downloads unless it lies in the folder of this process, which goes with it."""
_LEAST = 3
"""Axes of a tensor that onnx2tf may turn."""


def version() -> str:
    """Version of the converter, which asks for one version of TensorFlow and of the interpreter."""
    return metadata.version("onnx2tf")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    model = onnx.load(path)
    names = [value.name for value in model.graph.input if value.name in feeds]
    shapes = _output_shapes(model, feeds)
    interpreter = Interpreter(model_content=_convert(_prepare(model, outputs)), num_threads=1)
    given = sorted(interpreter.get_input_details(), key=lambda detail: str(detail["name"]))
    taken = interpreter.get_output_details()
    if len(given) != len(names) or len(taken) != len(outputs):
        raise RuntimeError(f"{len(given)} of {len(names)} inputs and {len(taken)} of {len(outputs)} outputs are left")
    for detail, name in zip(given, names, strict=True):
        if tuple(detail["shape"]) != feeds[name].shape:
            interpreter.resize_tensor_input(detail["index"], feeds[name].shape, strict=True)
    interpreter.allocate_tensors()

    def run(feeds: dict[str, Any]) -> list[Any]:
        for detail, name in zip(given, names, strict=True):
            interpreter.set_tensor(detail["index"], feeds[name])
        interpreter.invoke()
        found = [interpreter.get_tensor(detail["index"]) for detail in taken]
        return [array.reshape(shapes[name]) for array, name in zip(found, outputs, strict=True)]

    return run


def _output_shapes(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, list[int]]:
    """The shapes of the outputs for these feeds, as ONNX infers them; -1 for a size that values decide."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    del fixed.graph.value_info[:]
    for value in fixed.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, feeds.get(value.name, np.array(0)).shape, strict=False):
            dim.dim_value = size
    for value in fixed.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")
    graph = onnx.shape_inference.infer_shapes(fixed, data_prop=True).graph
    return {value.name: [size if size is not None else -1 for size in _sizes(value)] for value in graph.output}


def _sizes(value: onnx.ValueInfoProto) -> list[int | None]:
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]


def _prepare(model: onnx.ModelProto, outputs: list[str]) -> onnx.ModelProto:
    """The model with a name for each node, the shapes that can be inferred, and rows for outputs of many axes."""
    for index, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{index}"
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph, known = inferred.graph, {value.name: value for value in inferred.graph.output}
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "the_row"))
    del graph.output[:]
    for name in outputs:
        value = known[name]
        if len(_sizes(value)) >= _LEAST:
            graph.value_info.append(value)
            row = f"{name}_row"
            graph.node.append(onnx.helper.make_node("Reshape", [name, "the_row"], [row], name=f"{row}_Reshape"))
            sizes = _sizes(value)
            size = None if None in sizes else int(np.prod(sizes))  # type: ignore[arg-type]
            value = onnx.helper.make_tensor_value_info(row, value.type.tensor_type.elem_type, [size])
        graph.output.append(value)
    return inferred


def _convert(model: onnx.ModelProto) -> bytes:
    """The .tflite file; its outputs are in the order of the model's."""
    if not os.path.exists(_SAMPLES):
        np.save(_SAMPLES, np.random.default_rng(0).random((20, 128, 128, 3), dtype=np.float32))
    tf.keras.backend.clear_session()
    weights = {tensor.name for tensor in model.graph.initializer}
    network = onnx2tf.convert(
        onnx_graph=model,
        output_folder_path="tflite",
        keep_shape_absolutely_input_names=[v.name for v in model.graph.input if v.name not in weights] or None,
        not_use_onnxsim=True,
        not_use_opname_auto_generate=True,
        disable_model_save=True,
        verbosity="error",
    )
    if len(network.outputs) != len(model.graph.output):
        raise RuntimeError(f"onnx2tf kept {len(network.outputs)} of {len(model.graph.output)} outputs")

    def call_by_name(*inputs: Any) -> dict[str, Any]:
        found = network(inputs)
        return {f"y{i:04}": y for i, y in enumerate(found if isinstance(found, (list, tuple)) else [found])}

    signature = [tf.TensorSpec(x.shape, x.dtype, f"x{i:04}") for i, x in enumerate(network.inputs)]
    function = tf.function(call_by_name, input_signature=signature).get_concrete_function()
    return bytes(tf.lite.TFLiteConverter.from_concrete_functions([function], network).convert())
