"""Numbers beyond the format's range, in constants and in what nodes in float32 give to others."""

import io

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from torch_onnx_compat import Float16
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.precision.convert import convert
from torch_onnx_compat.precision.plan import HalfPlan, Reason
from torch_onnx_compat.session import open_session


def converted(nodes, plan):
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [None])] for name in "xy"]
    graph = helper.make_graph(nodes, "graph", *values)
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    infer_model(model)
    buffer = io.BytesIO()
    write_model(convert(model, Float16(), plan), buffer)
    return open_session(buffer.getvalue()).run(None, {"x": np.array([0.5, 1.0], np.float32)})[0].tolist()


def constant(name, number):
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.FLOAT, [], [number]))


def test_a_constant_beyond_the_range_becomes_the_largest_number():
    nodes = [constant("c", -3e38), helper.make_node("Min", ["x", "c"], ["y"])]
    assert converted(nodes, HalfPlan()) == [-65504.0, -65504.0]


def test_a_value_beyond_the_range_becomes_the_largest_number():
    nodes = [constant("c", -3e38), helper.make_node("Mul", ["x", "c"], ["m"]), helper.make_node("Relu", ["m"], ["r"])]
    nodes += [helper.make_node("Min", ["m", "r"], ["y"])]
    plan = HalfPlan(kept={1: Reason("range")}, peaks={1: 3e38})
    assert converted(nodes, plan) == [-65504.0, -65504.0]
