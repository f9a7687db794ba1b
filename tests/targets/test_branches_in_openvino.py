"""Branches whose results have sizes of the run, in OpenVINO: loops of one round or none, and right in the first run."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.engines import EngineProcess, find_engine
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.targets import Row, Target

IF = Target("picky", rows=(Row("If", "wrong"),))


def ran(model, feeds):
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    return session.run(None, feeds)[0]


@pytest.mark.parametrize(
    ("branches", "loops"),
    [
        ("p = Pad(x, pads)|q = Identity(x)", 1),
        ("p = Identity(x)|q = Concat<axis = 1>(x, y)", 1),
        ("a = Neg(y) p = Concat<axis = 1>(a, y, y)|q = Concat<axis = 1>(x, y)", 2),
        ("p = If(c) <then_branch = t () => (float[n,d] r) { r = Exp(x) }, else_branch = e () => (float[n,e] s) "
         "{ s = Pad(x, pads) }>|q = Concat<axis = 1>(x, x)", 4),
    ],
)  # fmt: skip
def test_loops_compute_what_the_branches_do(branches, loops):
    one, other = branches.split("|")
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[n,t] x, float[n,t] y, bool c) => (float[n,s] z)
    <int64[4] pads = {{0, 1, 0, 2}}> {{
        z = If(c) <then_branch = a () => (float[n,u] p) {{ {one} }}, else_branch = b () => (float[n,v] q) {{ {other} }}>
    }}"""
    model, plain = ir.from_onnx_text(text), ir.from_onnx_text(text)
    adapt_to_target(model, IF)
    operators = [node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph)]
    assert (operators.count("Loop"), operators.count("If")) == (loops, 0)
    onnx.checker.check_model(ir.to_proto(model))
    for length in (0, 1, 5):
        for condition in (True, False):
            x, y = np.random.default_rng(0).standard_normal((2, 2, length)).astype(np.float32)
            feeds = {"x": x, "y": y, "c": np.array(condition)}
            np.testing.assert_array_equal(ran(model, feeds), ran(plain, feeds))


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3, 1, 1)

    def forward(self, x):
        h, w = x.shape[2:]
        if h % 4 != 0 or w % 4 != 0:
            x = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        return self.conv(x)


class Attention(nn.Module):
    def forward(self, x):
        y = torch.cat([x, x.flip(2)], 2) if x.shape[2] > 4 else torch.cat([x, x, x], 2)[:, :, :-1]
        y = y.flatten(2).mT
        return (y @ y.mT).softmax(-1) @ y


class Nested(Padded):
    def forward(self, x):
        if x.shape[2] > 4:
            if x.shape[2] % 2:
                x = F.pad(x, (0, 0, 1, 0))
            x = torch.cat([x, x], 2)
        return self.conv(x)


class Unlike(Padded):
    """The branches read nothing alike, so that no tensor can be what both loops begin with."""

    def forward(self, x, y):
        return self.conv(x.flip(2) if x.shape[2] > 5 else torch.cat([y, y], 2))


AXES = {0: "n", 2: "h", 3: "w"}


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("model", [Padded, Attention, Nested])
def test_first_run(model, exporter, tmp_path):
    model, path = model().eval(), tmp_path / "model.onnx"
    result = export_compat(
        model, torch.randn(2, 3, 9, 10), path, dynamic={"x": AXES}, target="openvino", exporter=exporter
    )
    assert "If" not in result.nodes
    engine = find_engine("openvino")
    if engine.interpreter() is None:
        pytest.skip("openvino is not installed")
    with EngineProcess(engine) as process:
        for shape in ((2, 3, 9, 10), (1, 3, 8, 8), (3, 3, 1, 7)):
            x = torch.randn(shape)
            for found in (outcome := process.run(path, {"x": x.numpy()}, ["output"])).outputs, outcome.first:
                torch.testing.assert_close(torch.from_numpy(found[0]), model(x), rtol=1e-4, atol=1e-5)


def test_branches_that_read_nothing_alike_are_refused():
    options = {"dynamic": {"x": AXES, "y": AXES}, "exporter": "torchscript"}
    inputs = torch.randn(2, 3, 9, 10), torch.randn(2, 3, 9, 10)
    export_compat(Unlike().eval(), inputs, **options)
    with pytest.raises(CompatError, match=r"If wrong on openvino where later_nodes=compute.* decisions that the model"):
        export_compat(Unlike().eval(), inputs, target="openvino", **options)
