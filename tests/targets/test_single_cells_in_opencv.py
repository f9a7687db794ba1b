"""Images of one row or column, in OpenCV, whose linear Resize reads beyond them: these are doubled."""

import itertools

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.engines import EngineProcess, find_engine
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.targets import Row, Target

PICKY = Target("picky", rows=tuple(Row("Resize", "wrong", {axis: ["one", "any"]}) for axis in ("rows", "columns")))
SIZES = [(1, 11), (11, 1), (1, 1), (2, 5), (7, 6)]


def parsed(shape, resize):
    model = ir.from_onnx_text(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[{shape}] x) => (float[a,b,c,d] y)'
        f"<float[4] factors = {{1, 1, 2, 3}}, int64[4] whole = {{1, 1, 2, 3}}> {{ {resize} }}"
    )
    infer_model(model)
    return model


def ran(model, x):
    return onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize(("shape", "rows", "columns"), [("n,3,h,5", "any", "more"), ("1,3,1,w", "one", "any")])
def test_facts(shape, rows, columns):
    model = parsed(shape, 'y = Resize<mode = "linear">(x, , factors)')
    facts = node_facts(model.graph[0], 17)
    assert (facts["rows"], facts["columns"]) == (rows, columns)


@pytest.mark.parametrize("mode", ["align_corners", "half_pixel", "asymmetric"])
@pytest.mark.parametrize("given", [", factors)", ", , sizes)"])
def test_a_single_row_or_column_is_doubled(given, mode):
    attributes = f'mode = "linear", coordinate_transformation_mode = "{mode}"'
    nodes = f"shape = Shape(x) sizes = Mul(shape, whole) y = Resize<{attributes}>(x, {given}"
    model, plain = parsed("n,3,h,w", nodes), parsed("n,3,h,w", nodes)
    adapt_to_target(model, PICKY)
    (resize,) = [node for node in model.graph if node.op_type == "Resize"]
    facts = node_facts(resize, 17)
    assert (facts["rows"], facts["columns"]) == ("more", "more")
    for size in SIZES:
        x = np.random.default_rng(0).standard_normal((2, 3, *size)).astype(np.float32)
        np.testing.assert_allclose(ran(model, x), ran(plain, x), atol=1e-5)


class Upsampled(nn.Module):
    def __init__(self, corners):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.corners = nn.Conv2d(3, 4, 3, padding=1), corners

    def forward(self, x):
        y = F.interpolate(self.conv(x), scale_factor=2, mode="bilinear", align_corners=self.corners)
        return F.interpolate(y[..., ::2], size=x.shape[2:], mode="bilinear", align_corners=self.corners)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("corners", [True, False])
def test_in_the_engine(corners, exporter, tmp_path):
    model, path = Upsampled(corners).eval().requires_grad_(False), tmp_path / "model.onnx"
    dynamic = {"x": {0: "n", 2: "h", 3: "w"}}
    export_compat(model, torch.randn(1, 3, 12, 13), path, dynamic=dynamic, target="opencv", exporter=exporter)
    engine = find_engine("opencv")
    if engine.interpreter() is None:
        pytest.skip("opencv is not installed")
    with EngineProcess(engine) as process:
        for size, _ in itertools.product(SIZES, range(2)):
            x = torch.randn(2, 3, *size)
            (found,) = process.run(path, {"x": x.numpy()}, ["output"]).outputs
            torch.testing.assert_close(torch.from_numpy(found), model(x), rtol=1e-4, atol=1e-4)


def test_fractions_of_dynamic_sizes_are_refused_for_tract():
    model = lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear")  # noqa: E731
    x, dynamic = torch.randn(1, 3, 12, 13), {"x": {2: "h", 3: "w"}}
    with pytest.raises(CompatError, match=r"Resize refused on tract where sizes=dynamic, scales!=whole"):
        export_compat(model, x, dynamic=dynamic, target="tract", exporter="torchscript")
    assert export_compat(model, x, target="tract", exporter="torchscript").nodes["Resize"] == 1
