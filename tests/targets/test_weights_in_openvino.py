"""Weights that nodes read both as they stand and transposed, in OpenVINO: each way has a constant of its own."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines import EngineProcess, find_engine
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.targets import Row, Target

OPERATORS = ("ConvTranspose", "Einsum", "Gemm", "MatMul")
PICKY = Target("picky", rows=tuple(Row(name, "wrong", {"weight": "turned"}) for name in OPERATORS))
WEIGHTS = {"W": (4, 4), "V": (4, 8), "T": (3, 4, 4), "K": (4, 4, 3, 3)}
FEEDS = {"x": (2, 4), "s": (3, 2, 4), "p": (2, 4, 6, 6), "v": (2, 8), "q": (4, 4)}

READINGS = [
    ("y = MatMul(x, W) z = Gemm<transB = 1>(x, W)", "Gemm"),
    ("y = Gemm(x, W) z = Gemm<transB = 1, alpha = 0.5>(x, W)", "Gemm"),
    ("U = Transpose<perm = [1, 0]>(W) y = MatMul(x, W) z = MatMul(s, U)", "MatMul"),
    ("U = Transpose<perm = [1, 0]>(W) y = MatMul(x, U) z = Gemm<transB = 1>(x, U)", "MatMul"),
    ("U = Transpose<perm = [0, 2, 1]>(T) y = MatMul(s, T) z = MatMul(s, U)", "MatMul"),
    ("F = Reshape(V, flat) U = Transpose<perm = [1, 0]>(F) y = MatMul(x, V) z = MatMul(x, U)", "MatMul"),
    ('y = MatMul(x, W) z = Einsum<equation = "ai,oi->ao">(x, W)', "Einsum"),
    ("y = Conv(p, K) z = ConvTranspose(p, K)", "ConvTranspose"),
    ("y = MatMul(x, W) z = MatMul(s, W)", ""),
    ("y = MatMul(x, V) z = Gemm<transB = 1>(v, V)", ""),
    ("U = Transpose<perm = [1, 0]>(W) y = MatMul(x, U) z = Gemm<transB = 1>(x, W)", ""),
    ("U = Transpose<perm = [1, 0]>(q) y = MatMul(q, W) z = MatMul(W, U)", ""),
    ("y = Conv(p, K) z = Conv<strides = [2, 2]>(p, K)", ""),
]


def parsed(nodes):
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in FEEDS.items())
    weights = ", ".join(
        f"float[{','.join(map(str, shape))}] {name} = {{{', '.join(map(str, numbers(shape).ravel()))}}}"
        for name, shape in WEIGHTS.items()
    )
    text = f"g ({inputs}) => (y, z) <{weights}, int64[2] flat = {{8, 4}}> {{ {nodes} }}"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    infer_model(model)
    return model


def numbers(shape):
    return np.random.default_rng(0).uniform(0.5, 1, shape).astype(np.float32)


def ran(model):
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    return session.run(None, {name: numbers(shape) for name, shape in FEEDS.items()})


def assert_suited(nodes, target):
    model = parsed(nodes)
    adapt_to_target(model, target)
    for found, wanted in zip(ran(model), ran(parsed(nodes)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    return model


def readers(model):
    return [node.op_type for node in model.graph if node_facts(node, 18).get("weight") == "turned"]


@pytest.mark.parametrize(("nodes", "turned"), READINGS)
def test_a_weight_that_is_read_both_ways_is_copied(nodes, turned):
    assert readers(parsed(nodes)) == ([turned] if turned else [])
    model = assert_suited(nodes, PICKY)
    assert not readers(model)
    assert len(list(model.graph)) <= len(list(parsed(nodes).graph))


@pytest.mark.parametrize(("equation", "data", "matrix"), [("ai,io->ao", "x", "V"), ("xyz,kz->xyk", "s", "W")])
def test_an_einsum_as_a_product(equation, data, matrix):
    nodes = f'y = Einsum<equation = "{equation}">({data}, {matrix}) z = Neg(y)'
    model = assert_suited(nodes, Target("picky", rows=(Row("Einsum", "refused"),)))
    assert {node.op_type for node in model.graph} <= {"MatMul", "Neg", "Transpose"}


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(8, 8)

    def forward(self, x, y):
        return (self.inner(x) + self.inner(y)) @ self.inner.weight


class Equations(Siamese):
    def forward(self, x, y):
        x = torch.einsum("bi,oi->bo", x, self.inner.weight)
        return torch.einsum("bi,io->bo", x, self.inner.weight) + y @ self.inner.weight


class Mirrored(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x, y):
        x = self.conv(x[:, :, None, None]).relu()
        return nn.functional.conv_transpose2d(x, self.conv.weight, padding=1).flatten(1) + y


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("model", [Siamese, Equations, Mirrored])
def test_in_the_engine(model, exporter, tmp_path):
    model, path = model().eval().requires_grad_(False), tmp_path / "model.onnx"
    options = {"dynamic": {"x": {0: "b"}, "y": {0: "b"}}, "target": "openvino", "exporter": exporter}
    export_compat(model, (torch.randn(2, 8), torch.randn(2, 8)), path, **options)
    engine = find_engine("openvino")
    if engine.interpreter() is None:
        pytest.skip("openvino is not installed")
    with EngineProcess(engine) as process:
        for batch in (2, 4):
            x, y = torch.randn(2, batch, 8)
            (found,) = process.run(path, {"x": x.numpy(), "y": y.numpy()}, ["output"]).outputs
            torch.testing.assert_close(torch.from_numpy(found), model(x, y), rtol=1e-4, atol=1e-5)
