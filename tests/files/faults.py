"""Files with a planted fault: a deep network, the same with other names, and one node of it that computes otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = ("weight", "attribute", "operator", "order")


def deep(path: Path, depth: int = 6, seed: int = 0) -> onnx.ModelProto:
    """A network of convolutions, norms, skip connections and an attention-like product at its end."""
    random = np.random.default_rng(seed)
    nodes, weights = [], {}
    value = "image"

    def weight(name: str, *shape: int) -> str:
        weights[name] = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)
        return name

    for i in range(depth):
        kernel, bias = weight(f"kernel{i}", 4, 4 if i else 3, 3, 3), weight(f"bias{i}", 4)
        nodes.append(helper.make_node("Conv", [value, kernel, bias], [f"conv{i}"], f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("LeakyRelu", [f"conv{i}"], [f"act{i}"], f"act{i}", alpha=0.2))
        if i:
            nodes.append(helper.make_node("Add", [f"act{i}", value], [f"sum{i}"], f"sum{i}"))
        value = f"sum{i}" if i else f"act{i}"
    nodes += [
        helper.make_node("Reshape", [value, "rows"], ["flat"], "flat"),
        helper.make_node("Transpose", ["flat"], ["turned"], "turned", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["flat", "turned"], ["scores"], "scores"),
        helper.make_node("Softmax", ["scores"], ["weights"], "weights", axis=-1),
        helper.make_node("MatMul", ["weights", "flat"], ["mixed"], "mixed"),
        helper.make_node("ReduceMean", ["mixed"], ["result"], "result", axes=[2], keepdims=0),
    ]
    weights["rows"] = np.array([0, 4, -1], np.int64)
    graph = helper.make_graph(
        nodes,
        "deep",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return model


def plant(model: onnx.ModelProto, kind: str, where: int) -> tuple[onnx.ModelProto, str]:
    """A copy with one node that computes otherwise, every value under another name; and that node's name."""
    broken = onnx.ModelProto()
    broken.CopyFrom(model)
    name = spoil(broken, kind, where)
    _rename(broken)
    return broken, name


def spoil(model: onnx.ModelProto, kind: str, where: int) -> str:
    """Lets one node compute otherwise, in place, where the model has it; returns that node's name.

    An engine that does this to each file that it gets has a fault in one kernel.
    """
    layer = where % 6
    if kind == "operator" and not layer:
        layer = 1  # the first layer has no sum
    name = {"weight": f"conv{layer}", "attribute": f"act{layer}", "operator": f"sum{layer}", "order": "weights"}[kind]
    for node in (node for node in model.graph.node if node.name == name):
        if kind == "weight":
            tensor = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[1])
            array = numpy_helper.to_array(tensor).copy()
            array.flat[where % array.size] += 0.3
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        elif kind == "attribute":
            node.attribute[0].f = 0.25
        elif kind == "operator":
            node.op_type = "Sub"
        else:
            node.attribute[0].i = -2
    return name


def _rename(model: onnx.ModelProto) -> None:
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    for node in model.graph.node:
        for names in (node.input, node.output):
            for index, value in enumerate(names):
                names[index] = value if value in kept else f"other_{value}"
    for tensor in model.graph.initializer:
        tensor.name = f"other_{tensor.name}"
