"""A streamed model is the very model that onnx would have written."""

import io

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from torch_onnx_compat.graph.stream import write_model

TYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_, ml_dtypes.bfloat16]


def model_with(weights):
    nodes = [ir.node("Identity", [w], name=f"n{i}") for i, w in enumerate(weights)]
    for i, node in enumerate(nodes):
        node.outputs[0].name = f"y{i}"
        node.outputs[0].type, node.outputs[0].shape = weights[i].type, weights[i].shape
    graph = ir.Graph(
        [], [n.outputs[0] for n in nodes], nodes=nodes, initializers=weights, opset_imports={"": 20}, name="g"
    )
    model = ir.Model(graph, ir_version=10, producer_name="test")
    model.metadata_props["key"] = "value"
    return model


def weight(name, array):
    tensor = ir.tensor(array, name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 3000])
def test_equals_what_onnx_writes(dtype, size):
    array = (np.arange(size * 2) % 7).reshape(2, size).astype(dtype)
    model = model_with([weight("w", array), weight("small", np.float32(3).reshape(()))])
    file = io.BytesIO()
    write_model(model, file)
    streamed = onnx.load_model_from_string(file.getvalue())
    stock = ir.to_proto(model)
    assert streamed.graph.node == stock.graph.node
    assert streamed.metadata_props == stock.metadata_props
    assert (streamed.ir_version, streamed.opset_import) == (stock.ir_version, stock.opset_import)
    found = {t.name: numpy_helper.to_array(t) for t in streamed.graph.initializer}
    np.testing.assert_array_equal(found["w"], array)
    assert found["small"] == 3
    onnx.checker.check_model(streamed)


def test_leaves_the_model_as_it_was():
    model = model_with([weight("w", np.ones(5000, np.float32))])
    tensor = model.graph.initializers["w"].const_value
    write_model(model, io.BytesIO())
    assert model.graph.initializers["w"].const_value is tensor


def test_lengths_of_every_number_of_bytes():
    for size in (127, 128, 16_383, 16_384, 2_097_152):
        model = model_with([weight("w", np.ones(size, np.int8)), weight("v", np.ones(2000, np.int8))])
        file = io.BytesIO()
        write_model(model, file)
        loaded = onnx.load_model_from_string(file.getvalue())
        assert {tuple(t.dims) for t in loaded.graph.initializer} == {(size,), (2000,)}
