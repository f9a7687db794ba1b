"""Sessions add up eight-bit products exactly on every processor."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from torch_onnx_compat.session import open_session

ROWS = np.full((2, 64), 255, np.uint8)
WEIGHTS = np.full((64, 8), 127, np.int8)


def model_of(nodes, kind, result, weights):
    """A graph from x, (2, 64), to y, (2, 8)."""
    x = helper.make_tensor_value_info("x", kind, [2, 64])
    y = helper.make_tensor_value_info("y", result, [2, 8])
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(a, n) for n, a in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def test_products_of_integers():
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    model = model_of(nodes, TensorProto.UINT8, TensorProto.INT32, {"w": WEIGHTS})
    (found,) = open_session(model).run(None, {"x": ROWS})
    assert (found == 64 * 255 * 127).all()


def test_a_file_that_onnxruntime_refuses_with_exact_sums_is_opened():
    """onnxruntime 1.32 stops where two layers share their weights, on processors without VNNI."""
    one, zero = np.float32(1), np.uint8(0)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "one", "none"], ["weights"]),
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["rounded"]),
        helper.make_node("DequantizeLinear", ["rounded", "one", "zero"], ["values"]),
        helper.make_node("MatMul", ["values", "weights"], ["first"]),
        helper.make_node("MatMul", ["values", "weights"], ["second"]),
        helper.make_node("Add", ["first", "second"], ["y"]),
    ]
    model = model_of(
        nodes, TensorProto.FLOAT, TensorProto.FLOAT, {"w": WEIGHTS, "one": one, "zero": zero, "none": np.int8(0)}
    )
    (found,) = open_session(model).run(None, {"x": np.ones((2, 64), np.float32)})
    assert (found == 2 * 64 * 127).all()


def test_what_the_caller_says_of_the_sums_is_kept():
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "0")
    model = model_of(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], TensorProto.UINT8, TensorProto.INT32, {"w": WEIGHTS}
    )
    session = open_session(model, sess_options=options)
    assert session.get_session_options().get_session_config_entry("session.x64quantprecision") == "0"


def test_an_invalid_file_is_refused(capfd):
    nodes = [helper.make_node("Bogus", ["x"], ["y"])]
    with pytest.raises(Exception, match="Bogus"):
        open_session(model_of(nodes, TensorProto.FLOAT, TensorProto.FLOAT, {}))
    assert not capfd.readouterr().err  # onnxruntime warns where an option is set a second time
