"""What stands against a target is named before the file is written."""

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat, rewrite
from torch_onnx_compat.check.lint import Unsuitable, lint
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.targets import Row, Target

GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n,3,4,4] x) => (float[n,3,4,4] y) { h = Elu<alpha=0.5>(x) y = Elu(h) }"""


def test_only_the_nodes_that_meet_the_condition():
    model = ir.from_onnx_text(GRAPH)
    model.graph[0].name, model.graph[1].name = "first", "second"
    with pytest.raises(Unsuitable, match=r"Elu wrong on board where alpha=0.5 \(at first\)\.$") as error:
        lint(model, Target("board", rows=(Row("Elu", "wrong", {"alpha": 0.5}),)))
    (finding,) = error.value.findings
    assert finding.facts["rank"] == 4


def test_dynamic_axes():
    with pytest.raises(Unsuitable, match=r"takes fixed shapes only, and axis 0 of 'x' may vary; leave out `dynamic`"):
        lint(ir.from_onnx_text(GRAPH), Target("board", dynamic="no"))


def test_nothing_is_written(tmp_path, exporter):
    path = tmp_path / "m.onnx"
    target = Target("board", opset=17, rows=(Row("Tan", "wrong"),))
    with pytest.raises(UnsupportedError, match="Tan wrong on board"):
        export_compat(lambda x: x.tan(), torch.rand(2, 3), path, target=target, exporter=exporter)
    assert not path.exists()


def test_file_is_suited_to_the_target(exporter):
    rows = (Row("Softplus", "wrong"), Row("HardSigmoid", "wrong", {"gates": "another"}))
    target = Target("board", opset=17, ir_version=7, rows=rows)
    model = nn.Sequential(nn.Softplus(), nn.Hardsigmoid())
    result = export_compat(model, torch.linspace(-99, 99, 20)[None], target=target, exporter=exporter)
    assert "Softplus" not in result.nodes
    assert "HardSigmoid" in result.nodes
    assert onnx.load_from_string(result.model_bytes).ir_version <= 7


def test_entry_is_applied_once_the_file_shows_that_it_is_needed(exporter):
    @rewrite(torch.tan, name="tan_to_ratio", avoids=("Tan",), registry=None)
    def tan_to_ratio(input):
        return torch.sin(input) / torch.cos(input)

    target = Target("board", opset=17, rows=(Row("Tan", "wrong", {"rank": 2}),))
    flat, square = (
        export_compat(lambda x: torch.tan(x), x, target=target, exporter=exporter, rewrites=[tan_to_ratio])
        for x in (torch.rand(3), torch.rand(2, 3))
    )
    assert "Tan" in flat.nodes
    assert "Tan" not in square.nodes
    assert [note.entry for note in square.applied] == ["tan_to_ratio"]
