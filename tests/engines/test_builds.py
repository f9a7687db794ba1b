"""Engines that only build files here: what they parsed is computed, and `built` is never called `works`."""

import sys
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

from torch_onnx_compat import Verify, cli, export_compat
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess, Outcome, find_engine
from torch_onnx_compat.engines.compare import judge, reference
from torch_onnx_compat.engines.measure import run_probes
from torch_onnx_compat.engines.probes import node_tests, own_probes
from torch_onnx_compat.engines.profile import profile
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.profile import to_toml

NAME = "tensorrt-rtx"
ADAPTER = """
import json
import numpy as np
import onnx
def version():
    return "1"
def build(path, ranges, values, into, variant):
    graph = onnx.load(path).graph
    node = graph.node[0]
    if node.op_type == "RoiAlign":
        raise RuntimeError("no graphics card: parser: no plugin")
    if node.op_type not in ("Sign", "Neg", "Erf", "Conv", "Ceil"):
        raise RuntimeError("parser: no such operator")
    def value(of):
        return {"name": of.name, "type": "FLOAT", "shape": None}
    # Neg is misread, and what a Ceil computes is not known.
    kind, attributes = {"Neg": ("UNARY", {"op": "ABS"}), "Ceil": ("NEW", {})}.get(
        node.op_type, ("UNARY", {"op": node.op_type.upper()})
    )
    layer = {"name": "n", "kind": kind, "attributes": attributes}
    layer |= {"inputs": [value(graph.input[0])], "outputs": [value(graph.output[0])]}
    network = {"inputs": [value(graph.input[0])], "outputs": [graph.output[0].name], "layers": [layer]}
    np.savez(into, network=np.array(json.dumps(network)))
    return 1234
"""


@pytest.fixture
def builder(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    path.write_text(ADAPTER)
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    return Engine("fake", "numpy", (), builds=True)


def alone(*op_types):
    return [p for p in own_probes() if p.op_type in op_types and len(p.model.graph.node) == 1 and p.opset == 17]


def test_what_was_parsed_is_compared(builder):
    version, found = run_probes(builder, alone("Sign", "Neg", "Ceil", "Exp", "RoiAlign"))
    verdicts = {(s.op_type, s.verdict) for s in found}
    # Of RoiAlign, which asks for a card, nothing is said.
    assert verdicts == {("Sign", "built"), ("Neg", "wrong"), ("Exp", "refused"), ("Ceil", "built")}
    assert {s.reason for s in found if s.op_type == "Ceil"} == {
        "values not known: layer 'n' of kind NEW: what it computes is not known here; the network cannot be judged."
    }
    target = profile(builder, version, found, "2026-01-01")
    assert target.measured
    assert not target.runs
    assert target.verdict("Sign", 17, {}) == "built"
    assert target.verdict("Neg", 17, {}) == "wrong"
    assert "never run" in target.how
    assert "\nruns = false\n" in to_toml(target)


@pytest.fixture
def built_target(builder, monkeypatch):
    monkeypatch.setenv("TORCH_ONNX_COMPAT_TENSORRT_RTX_PYTHON", sys.executable)
    monkeypatch.setitem(ENGINES, NAME, replace(builder, name=NAME))


@pytest.mark.usefixtures("built_target")
def test_an_export_proves_the_reading_or_says_that_it_could_not(tmp_path):
    x, how = torch.randn(2, 3), Verify(on_target=True)
    result = export_compat(lambda x: torch.sign(x), x, tmp_path / "sign.onnx", target=NAME, verify=how, dynamic="batch")
    assert any(row.case == f"example, parsed by {NAME} 1" and row.ok for row in result.table)
    with pytest.raises(VerificationError, match=f"{NAME} computes something else"):
        export_compat(lambda x: torch.neg(x), x, tmp_path / "neg.onnx", target=NAME, verify=how)
    assert not (tmp_path / "neg.onnx").exists()
    result = export_compat(lambda x: torch.ceil(x), x, tmp_path / "ceil.onnx", target=NAME, verify=how)
    assert not any("parsed by" in row.case for row in result.table)
    assert any(f"built for {NAME} 1, but its values are not known: layer 'n' of kind NEW" in n for n in result.notes)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome("built", (np.ones(2),)), "built"),
        (Outcome("built", (np.zeros(2),)), "wrong"),
        (Outcome("built", error="layer 'n' of kind NEW"), "built"),
        (Outcome("misread", error="joins shapes"), "wrong"),
        (Outcome("unknown", error="no graphics card: ..."), "unknown"),
        (Outcome("ran", (np.ones(2),)), "works"),
    ],
)
def test_verdicts(outcome, verdict):
    assert judge(outcome, [np.ones(2)], (1e-3, 1e-3))[0] == verdict


def test_a_profile_says_how_it_is_known(tmp_path, capsys):
    board = tmp_path / "board.toml"
    board.write_text('name = "b"\nopset = 17\nopsets = [11, 17]\nmeasured = true\nruns = false\nworks = ["Sign"]\n')
    path = tmp_path / "m.onnx"
    onnx.save(alone("Sign")[0].model, path)
    with pytest.raises(SystemExit) as left:
        cli.main(["check", str(path), "--target", str(board)])
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert "never run: nothing is known of the values that its kernels compute" in text
    assert "built" in text
    assert load_target(board).verdict("Sign", 17, {}) == "built"


@pytest.fixture
def engine():
    found = find_engine(NAME)
    if found.interpreter() is None:
        pytest.skip(f"{NAME} is not installed")
    return found


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image, grid):
        sampled = nn.functional.grid_sample(self.conv(image), grid, align_corners=False, padding_mode="border")
        return sampled.amax(1), sampled.flatten(1).topk(3)[0]


def test_a_file_is_parsed_built_and_its_reading_proven(engine, tmp_path):
    args = (torch.rand(2, 3, 9, 9), torch.rand(2, 5, 5, 2) * 3 - 1.5)
    axes = {name: {0: ("batch", 1, 8)} for name in ("image", "grid")}
    result = export_compat(
        Sampler().eval(), args, tmp_path / "m.onnx", dynamic=axes, target=NAME, verify=Verify(on_target=True)
    )
    rows = [row for row in result.table if f"parsed by {NAME}" in row.case]
    assert len(rows) >= 4
    assert all(row.ok for row in rows)
    assert "--minShapes=image:1x3x9x9,grid:1x5x5x2" in str(result)


def test_an_omitted_attribute_that_the_parser_misreads_is_found_and_written(engine, tmp_path):
    """ONNX's Trilu keeps the upper triangle by default; onnx-tensorrt's parser takes upper=0 where it is omitted."""
    probe = next(p for p in node_tests() if p.name == "test_triu")
    with EngineProcess(engine) as process:
        outcome = process.run(probe.model.SerializeToString(), probe.feeds, probe.outputs)
    wanted = reference(probe.model.SerializeToString(), probe.feeds)
    assert judge(outcome, wanted, (1e-3, 1e-3))[0] == "wrong"


@pytest.mark.parametrize(
    ("graph", "name", "number"),
    [
        ("(float[3,4] x) => (float[3,4] y) { y = Trilu(x) }", "upper", 1),
        (
            "(float[1,2,8,8] x, float[n,4] rois, int64[n] batch) => (float[n,2,3,3] y) "
            "{ y = RoiAlign<output_height=3, output_width=3, mode='max'>(x, rois, batch) }",
            "sampling_ratio",
            0,
        ),
    ],
)
@pytest.mark.parametrize("target", ["tensorrt-10", "tensorrt-11"])
def test_the_attribute_is_written_for_it(target, graph, name, number):
    from torch_onnx_compat.graph.adapt.adapt import adapt_to_target

    text = f'<ir_version: 8, opset_import: ["" : 17]> g {graph}'.replace("'", '"')
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert load_target(target).judge(model.graph[0].op_type, 17, node_facts(model.graph[0], 17)) is not None
    before = dict(model.graph[0].attributes)
    adapt_to_target(model, load_target(target))
    (node,) = model.graph
    assert node.attributes[name].as_int() == number
    assert all(node.attributes[key].value == held.value for key, held in before.items())


def test_inputs_that_decide_shapes_are_given_as_numbers(engine):
    probe = next(p for p in node_tests() if p.name == "test_expand_dim_changed")
    with EngineProcess(engine) as process:
        outcome = process.run(probe.model.SerializeToString(), probe.feeds, probe.outputs)
    wanted = reference(probe.model.SerializeToString(), probe.feeds)
    assert judge(outcome, wanted, (1e-3, 1e-3)) == ("built", "")
