"""The rendering shows what onnxruntime's CPU hides."""

import io

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from torch_onnx_compat.graph.rendering import render
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.session import open_session


def narrow_model(nodes, kind):
    values = [[helper.make_tensor_value_info(name, kind, [None])] for name in "xy"]
    graph = helper.make_graph(nodes, "graph", *values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model, x):
    buffer = io.BytesIO()
    write_model(render(ir.from_proto(model)), buffer)
    return open_session(buffer.getvalue()).run(None, {"x": x})[0]


def test_an_overflow_between_two_nodes_shows():
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Sqrt", ["s"], ["y"])]
    model = narrow_model(nodes, TensorProto.FLOAT16)
    x = np.array([3.0, 300.0], np.float16)
    hidden = open_session(model.SerializeToString()).run(None, {"x": x})[0]
    assert np.isfinite(hidden).all()  # where this fails, onnxruntime has the kernels, and may judge
    assert run(model, x.astype(np.float32)).tolist() == [3.0, np.inf]


def test_every_node_rounds():
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["y"])]
    x = np.array([1.1, 2.3, 7.7], np.float16)
    assert run(narrow_model(nodes, TensorProto.FLOAT16), x.astype(np.float32)).tolist() == ((x * x) * x).tolist()


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_constants_and_types_that_nodes_name_become_float32(kind):
    number = helper.make_tensor("c", kind, [1], [2.5])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=number),
        helper.make_node("Cast", ["x"], ["s"], to=kind),
        helper.make_node("Add", ["s", "c"], ["y"]),
    ]
    assert run(narrow_model(nodes, kind), np.array([1.0], np.float32)).tolist() == [3.5]
