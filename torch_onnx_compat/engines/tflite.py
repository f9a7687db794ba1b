"""TensorFlow Lite, CPU, in float32, with its own operators only; onnx2tf converts the ONNX file.

onnx2tf lays images out with the channels last, and takes every input of three axes or more for an image. Its option
-kat names inputs that keep their layout; here these are all inputs. Outputs of three axes or more become rows by a
Reshape, before which onnx2tf restores ONNX's order of axes.
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
"""File of the images that onnx2tf tests a conversion with. It downloads the file unless it lies in the working folder,
here the folder of this process, which is removed with it."""
_LEAST = 3
"""Axes from which on onnx2tf may transpose a tensor."""


def version() -> str:
    """Version of the converter, which requires one version of TensorFlow and of the interpreter."""
    return metadata.version("onnx2tf")


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    model = onnx.load(path)
    names = [value.name for value in model.graph.input if value.name in feeds]
    shapes = _output_shapes(model, feeds)
    interpreter = Interpreter(model_content=_convert(_prepare(model, outputs)), num_threads=1)
    input_details = sorted(interpreter.get_input_details(), key=lambda detail: str(detail["name"]))
    output_details = interpreter.get_output_details()
    if len(input_details) != len(names) or len(output_details) != len(outputs):
        raise RuntimeError(
            f"{len(input_details)} of {len(names)} inputs and {len(output_details)} of {len(outputs)} outputs are left"
        )
    for detail, name in zip(input_details, names, strict=True):
        if tuple(detail["shape"]) != feeds[name].shape:
            interpreter.resize_tensor_input(detail["index"], feeds[name].shape, strict=True)
    interpreter.allocate_tensors()

    def run(feeds: dict[str, Any]) -> list[Any]:
        for detail, name in zip(input_details, names, strict=True):
            interpreter.set_tensor(detail["index"], feeds[name])
        interpreter.invoke()
        found = [interpreter.get_tensor(detail["index"]) for detail in output_details]
        return [array.reshape(shapes[name]) for array, name in zip(found, outputs, strict=True)]

    return run


def _output_shapes(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, list[int]]:
    """The shapes of the outputs for these feeds, as ONNX infers them; -1 for a size that depends on values."""
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
    """The model with a name for each node and the shapes that can be inferred; outputs of many axes become rows."""
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
    """The .tflite file; its outputs have the model's order."""
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
