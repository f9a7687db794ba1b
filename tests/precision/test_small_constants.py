"""Constants that a format rounds to zero: what needs them stays in float32, though the example does not show it."""

import io

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import Bfloat16, Float16, export_compat
from torch_onnx_compat.files import convert
from torch_onnx_compat.graph.rendering import render
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.precision.convert import convert as narrow
from torch_onnx_compat.precision.plan import HalfPlan
from torch_onnx_compat.session import open_session


class LogSoftmaxByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        return torch.log(self.net(x).softmax(-1) + 1e-9)


class MeanOfTheMasked(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        mask = (x.abs().amax(-1, keepdim=True) > 0).float()
        return (self.net(x) * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class Logit(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        p = self.net(x).clamp(0, 1).clamp(1e-6, 1 - 1e-6)
        return torch.log(p / (1 - p))


class InABranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        p = self.net(x).softmax(-1)
        if x.sum() > 0:  # noqa: SIM108
            q = p * p + 1e-10
        else:
            q = p + 1e-10
        return torch.log(q)


def rendered(model):
    buffer = io.BytesIO()
    write_model(render(ir.from_proto(onnx.load_model_from_string(model))), buffer)
    return buffer.getvalue()


def check(model, precision, exporter, scale):
    torch.manual_seed(0)
    model, x = model().eval(), torch.randn(2, 5, 8)
    result = export_compat(model, x, dynamic={"x": {0: "batch", 1: "length"}}, precision=precision, exporter=exporter)
    sessions = [open_session(result.model_bytes)] if precision == "float16" else []
    for session in [*sessions, open_session(rendered(result.model_bytes))]:
        for case in (x * scale, -x * scale, torch.zeros(2, 7, 8), torch.randn(1, 3, 8) * scale):
            wanted = model.double()(case.double()).detach().float().numpy()
            model.float()
            found = session.run(None, {session.get_inputs()[0].name: case.numpy()})[0].astype(np.float32)
            np.testing.assert_allclose(found, wanted, rtol=0.05, atol=0.05 * np.abs(wanted).max() + 1e-3)
    return result


@pytest.mark.one_exporter
@pytest.mark.parametrize("model", [LogSoftmaxByHand, MeanOfTheMasked, Unit, Logit, InABranch])
def test_what_needs_a_small_constant_stays_in_float32(model, exporter):
    result = check(model, "float16", exporter, scale=20)
    assert any(row.why.startswith("reads ") and row.why.endswith("in float16") for row in result.precision.kept)
    assert result.precision.narrow > 0  # the product of matrices


def test_the_distance_from_1_in_bfloat16():
    result = check(Logit, Bfloat16(limit=0.3), "torchscript", scale=20)
    assert "reads 0.999999, which is 1 in bfloat16" in {row.why for row in result.precision.kept}


class Ordinary(nn.Module):
    """A layer normalisation by hand with a usual epsilon, a bias of small numbers, a scale of small numbers."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.linspace(-1e-8, 1, 8))

    def forward(self, x):
        x = self.net(x)
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return torch.relu(x * 0.25 + self.bias)


def test_constants_that_the_format_holds_cost_nothing():
    torch.manual_seed(0)
    result = export_compat(Ordinary().eval(), torch.randn(6, 8), dynamic="batch", precision="float16")
    assert not result.precision.kept


def test_a_file_of_any_tool(tmp_path):
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Exp", ["m"], ["p"]),
            helper.make_node("Add", ["p", "eps"], ["q"]),
            helper.make_node("Log", ["q"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [4, 4], np.eye(4).reshape(-1)),
            helper.make_tensor("eps", TensorProto.FLOAT, [], [1e-12]),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "a.onnx")
    result = convert(tmp_path / "a.onnx", tmp_path / "b.onnx", precision="float16")
    x = np.float32([[-17, -9, 0, 3], [-15, -12, -26, -30]])
    found = open_session(tmp_path / "b.onnx").run(None, {"x": x})[0]
    np.testing.assert_allclose(found, np.log(np.exp(x.astype(float)) + 1e-12), rtol=0.01, atol=1e-3)
    assert {row.op_type for row in result.precision.kept} == {"Exp", "Add", "Log"}


def test_a_shape_filled_with_a_number_beyond_the_range_is_filled_with_the_largest():
    number = helper.make_tensor("number", TensorProto.FLOAT, [1], [-3e38])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=number),
        helper.make_node("Max", ["x", "c"], ["y"]),
    ]
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [None])] for name in "xy"]
    graph = helper.make_graph(nodes, "graph", *values)
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    infer_model(model)
    buffer = io.BytesIO()
    write_model(narrow(model, Float16(), HalfPlan()), buffer)
    assert open_session(buffer.getvalue()).run(None, {"x": np.float32([-np.inf, 1])})[0].tolist() == [-65504.0, 1.0]
