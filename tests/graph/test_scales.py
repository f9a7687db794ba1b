"""Scales behind convolutions, multiplied into the weights: the numbers, the nodes, and where it must not be done."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.slim.scales import multiply_scales

RANDOM = np.random.default_rng(0)
W, B, S = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 1, 3, 3), (4,), (1, 4, 1, 1)))
X = RANDOM.normal(size=(2, 2, 6, 6)).astype(np.float32)


def scaled(weights=W, scale=S, bias=B, kind="Conv", more=(), outputs=("y",)):
    """A grouped convolution with a scale behind it, and an Abs."""
    inputs = ["x", "w", *(["b"] if bias is not None else [])]
    nodes = [
        helper.make_node(kind, inputs, ["c"], group=2),
        helper.make_node("Mul", ["s", "c"], ["m"]),
        helper.make_node("Abs", ["m"], ["y"]),
        *more,
    ]
    arrays = {"w": weights, "s": scale} | ({} if bias is None else {"b": bias})
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 2, 6, 6])],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def run(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})


def changed(model):
    graph = ir.from_proto(model)
    multiply_scales(graph)
    after = ir.to_proto(graph)
    onnx.checker.check_model(after, full_check=True)
    return after


@pytest.mark.parametrize("bias", [B, None])
@pytest.mark.parametrize("scale", [S, S.reshape(4, 1, 1), np.float32(0.3), np.float32([[[0.0]]])])
def test_numbers_stay_and_the_node_goes(bias, scale):
    before = scaled(scale=np.asarray(scale), bias=bias)
    after = changed(before)
    assert [node.op_type for node in after.graph.node] == ["Conv", "Abs"]
    assert len(after.graph.initializer) == (1 if bias is None else 2)
    np.testing.assert_allclose(run(after)[0], run(before)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "other",
    [
        {"scale": S[..., :1].repeat(4, -1)},  # one for each column
        {"scale": np.ones((2, 4, 1, 1), np.float32)},  # one for each picture
        {"scale": S * np.float32(1e-38)},  # digits would be lost
        {"scale": np.float32([[[np.inf]]])},
        {"more": [helper.make_node("Neg", ["c"], ["z"])], "outputs": ("y", "z")},
        {"outputs": ("y", "c")},
        {"outputs": ("y", "m")},
        {"more": [helper.make_node("Neg", ["w"], ["z"])], "outputs": ("y", "z")},
        {"kind": "ConvTranspose", "weights": W[:2].repeat(2, 1), "scale": S},
    ],
)
def test_where_it_cannot_be_done_nothing_changes(other):
    before = scaled(**other)
    after = changed(before)
    assert [node.op_type for node in after.graph.node] == [node.op_type for node in before.graph.node]
    for one, two in zip(run(after), run(before), strict=True):
        np.testing.assert_array_equal(one, two)


class Scaled(nn.Module):
    """A block with a layer scale, as ConvNeXt has."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.gamma = nn.Conv2d(3, 3, 3, padding=1), nn.Parameter(torch.rand(3))

    def forward(self, x):
        return x + self.conv(x) * self.gamma.reshape(1, -1, 1, 1)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_only_where_the_quality_is_asked_for(exporter):
    x = torch.rand(2, 3, 5, 5)
    default = export_compat(Scaled().eval(), x, dynamic="batch", exporter=exporter)
    smaller = export_compat(Scaled().eval(), x, dynamic="batch", exporter=exporter, optimize="size")
    assert default.nodes["Mul"] == 1
    assert "Mul" not in smaller.nodes
    wide = torch.cat([x, x * 3])
    np.testing.assert_allclose(smaller(wide)[0], Scaled().eval()(wide).detach(), rtol=1e-5, atol=1e-6)
