"""advise(): the forms of a file beside each other, and which of them is recommended."""

import json
import sys
from math import isnan, nan

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from torch_onnx_compat import CompatError, Target, Verify, cli, export_compat
from torch_onnx_compat.advice import advise
from torch_onnx_compat.advice.advice import Trial, choose, notes_on, winners
from torch_onnx_compat.advice.forms import KINDS, USUAL, Form, forms_for
from torch_onnx_compat.cli.advise import _KINDS
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.files import Bench
from torch_onnx_compat.targets import load_target

OPSET, HALF = Form("opset 13", ("opset",)), Form("float16", ("precision",))
FIXED, NMS = Form("fixed axes", ("axes",)), Form("nms", ("nms",))

RUNNER = """
import time
import onnx
import onnxruntime
def version():
    return "1"
def load(path, feeds, outputs, variant):
    model = onnx.load(path)
    opset = next(one.version for one in model.opset_import if not one.domain)
    narrow = any(weight.data_type == onnx.TensorProto.FLOAT16 for weight in model.graph.initializer)
    seconds = 0.012 - 0.004 * (opset == 13) - 0.004 * narrow
    session = onnxruntime.InferenceSession(path)
    def run(feeds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        return session.run(outputs, feeds)
    return run
"""
BUILDER = """
import os
def version():
    return "1"
def build(path, ranges, values, into, variant):
    if ranges["x"][2][0] != {most}:
        raise RuntimeError(f"parser: built for {{ranges['x']}}")
    import json, numpy
    x, y = ({{"name": name, "type": "FLOAT", "shape": None}} for name in ("x", "y"))
    layer = {{"name": "n", "kind": "NEW", "attributes": {{}}, "inputs": [x], "outputs": [y]}}
    network = {{"inputs": [x], "outputs": ["y"], "layers": [layer]}}
    numpy.savez(into, network=numpy.array(json.dumps(network)))
    return 1000 * os.path.getsize(path)
"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return self.layers(x)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval(), torch.rand(2, 64)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Registers an engine of that adapter under a name."""

    def register(name, adapter, **about):
        path = tmp_path / f"{name}.py"
        path.write_text(adapter)
        fake = type("Fake", (Engine,), {"path": path})(name, "numpy", (), **about)
        monkeypatch.setenv(fake.variable, sys.executable)
        monkeypatch.setitem(ENGINES, name, fake)

    return register


def trial(form, cost=nan, spread=0.0, why=""):
    timing = Bench("f", "e", {}, processor_ms=cost, quartiles_ms=(cost - spread, cost + spread))
    return Trial(form, 13, 1, 1, timing=None if isnan(cost) else timing, why=why)


@pytest.mark.parametrize(
    ("others", "best"),
    [
        ([trial(OPSET, 8.0), trial(HALF, 6.0)], HALF),
        ([trial(OPSET, 9.8), trial(HALF, 12.0)], USUAL),  # by two per cent
        ([trial(OPSET, 8.0, spread=2.5)], USUAL),  # the runs of one overlap those of the other
        ([trial(FIXED, 1.0), trial(NMS, 1.0)], USUAL),  # other files, not better ones
        ([trial(OPSET, 1.0, why="refused")], USUAL),
        ([trial(OPSET), trial(HALF)], USUAL),  # nothing was timed
    ],
)
def test_what_is_recommended(others, best):
    assert choose([trial(USUAL, 10.0, spread=0.1), *others]).form == best


def test_a_usual_form_that_does_not_work_is_not_recommended():
    usual = trial(USUAL, why="refused")
    assert choose([usual, trial(OPSET, 20.0), trial(HALF, 10.0)]).form == HALF
    assert choose([usual, trial(OPSET)]).form == OPSET
    assert [one.form for one in winners([usual, trial(OPSET, 20.0), trial(HALF, 10.0)])] == [OPSET, HALF]


def test_what_is_told_beside_the_table():
    usual = trial(USUAL, 10.0)
    told = notes_on([usual, trial(FIXED, 8.0), trial(NMS, 12.0), trial(Form("dense", ("nms",)), 11.0)], usual)
    assert told == [
        "fixed axes, whose file takes other inputs: -20%.",
        "to suppress boxes in the file, take dense: +10%.",
    ]
    assert notes_on([usual, trial(FIXED, 10.2)], usual) == [
        "fixed axes, whose file takes other inputs: about the same."
    ]
    assert notes_on([usual, trial(NMS, why="no")], usual) == [
        "no form suppresses boxes in the file here; leave that to the host."
    ]
    assert "only nodes and bytes are known" in notes_on([trial(USUAL), trial(OPSET)], usual)[0]


def forms(target, model=None, vary=("axes", "opset", "precision", "nms"), calibration=None, **options):
    return [form.name for form in forms_for(model or Net(), load_target(target), options, calibration, vary)]


def test_the_forms_follow_from_the_target():
    narrow = Target("board", opset=13, opsets=(12, 17))
    assert forms(narrow) == ["usual", "dynamic batch", "opset 12", "opset 17", "float16"]
    assert forms(narrow, dynamic="batch", opset_version=17) == ["usual", "fixed axes", "opset 12", "float16"]
    assert forms("onnxruntime", vary=["precision"]) == [
        "usual", "float16", "bfloat16", "int8-dynamic", "int8-weights", "int4-weights",
    ]  # fmt: skip
    assert "int8" in forms("onnxruntime", calibration=[torch.rand(2, 64)])


def test_the_forms_of_a_detector():
    model = Net()
    model.nc, model.reg_max = 3, 16
    assert forms("onnxruntime", model, ["nms"]) == ["usual", "nms", "nms-dense"]
    assert forms("tensorrt-11", model, ["nms"]) == ["usual", "nms", "nms-dense", "efficient-nms"]
    assert forms("tensorrt-11", model, ["nms"], postprocess="strip") == ["usual"]


def test_the_best_of_two_ways_together(net, engine):
    engine("slow", RUNNER)
    target = Target("slow", opset=17, opsets=(13, 17))
    found = advise(*net, target=target, dynamic="batch", rounds=2, runs=3)
    assert [one.form.name for one in found.trials] == [
        "usual", "fixed axes", "opset 13", "float16", "opset 13, float16",
    ]  # fmt: skip
    by_name = {one.form.name: one for one in found.trials}
    for name, wanted in {"usual": 12, "fixed axes": 12, "opset 13": 8, "float16": 8, "opset 13, float16": 4}.items():
        assert wanted <= by_name[name].timing.processor_ms < wanted + 2, name
        assert by_name[name].timing.load_ms > 0
    assert found.best.form.name == "opset 13, float16"
    result = export_compat(*net, **found.options)
    proto = result.model_proto
    assert (result.opset, result.nodes.total()) == (13, found.best.nodes)
    assert {weight.data_type for weight in proto.graph.initializer if weight.dims} == {onnx.TensorProto.FLOAT16}
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert by_name["usual"].bytes > 1.5 * found.best.bytes > 0
    assert 1e-6 < found.best.off_by < 0.02
    assert isnan(by_name["usual"].off_by)


def test_an_engine_that_builds_files_tells_what_it_built(net, engine):
    engine("builds", BUILDER.format(most=16), builds=True)
    target = Target("builds", opset=17, opsets=(13, 17))
    dynamic = {"x": {0: ("batch", 1, 16)}}
    found = advise(*net, target=target, dynamic=dynamic, vary=["axes", "precision"], verify=Verify(values=0))
    usual, fixed, half = found.trials
    assert "parser: built for [[2, 64], [2, 64], [2, 64]]" in fixed.why
    assert usual.timing.engine_mb == pytest.approx(usual.bytes / 1e3)
    assert isnan(usual.timing.median_ms)
    assert found.best is half
    assert "the size of what it built decides" in found.notes[0]


def test_an_engine_that_is_not_here(net):
    found = advise(*net, target="tensorrt-11", vary=["opset"])
    assert found.best.form == USUAL
    assert all(one.timing is None and one.nodes and one.bytes for one in found.trials)
    assert "there is no adapter for it" in found.notes[0]
    assert "only nodes and bytes are known" in found.notes[1]


def test_forms_that_cannot_be_made_say_why(net):
    found = advise(*net, vary=["precision"], rounds=1, runs=1)
    why = {one.form.name: one.why for one in found.trials}
    assert why["bfloat16"].startswith("a right file is made, and the engine here does not run it: ")
    assert "onnxruntime does not run the file" in why["bfloat16"]
    assert not why["int8-dynamic"]
    convolution = nn.Conv2d(3, 4, 3).eval()
    found = advise(convolution, torch.rand(1, 3, 8, 8), vary=["precision"], rounds=1, runs=1)
    assert {one.form.name: one.why for one in found.trials}["int8-dynamic"] == "nothing in it would be narrower."


def test_a_model_of_which_no_form_works():
    class Hopeless(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x)

    with pytest.raises(CompatError, match=r"advise: no form works on onnxruntime\. As usual: .*linalg_eig"):
        advise(Hopeless(), torch.rand(3, 3), vary=["opset"])


def test_words_that_make_no_sense(net):
    with pytest.raises(CompatError, match="unknown kind of form 'opsets'"):
        advise(*net, vary=["opsets"])
    with pytest.raises(CompatError, match="rounds=0"):
        advise(*net, rounds=0)


FACTORY = """
import torch
from torch import nn
def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval(), (torch.rand(2, 64),)
"""


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def test_the_command_ends_with_a_command_line_that_works(tmp_path, engine, monkeypatch):
    engine("slow", RUNNER)
    board = tmp_path / "slow.toml"
    board.write_text('name = "slow"\nopset = 17\nopsets = [13, 17]\n')
    (tmp_path / "net.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    words = ["net.py:build", "--target", "slow.toml", "--dynamic", "input:0=batch:1..9", "--vary", "opset,precision"]
    done = run("advise", *words, "--rounds", 2, "--runs", 3)
    assert done.exit_code == 0, done.output
    command = done.stdout.splitlines()[-1]
    assert command == (
        "torch-onnx-compat export net.py:build -o model.onnx --target slow.toml --dynamic input:0=batch:1..9 "
        "--opset 13 --precision float16"
    )
    assert "opset 13, float16 *" in done.stdout
    assert run(*command.split()[1:]).exit_code == 0
    proto = onnx.load(tmp_path / "model.onnx")
    assert proto.opset_import[0].version == 13
    assert {weight.data_type for weight in proto.graph.initializer if weight.dims} == {onnx.TensorProto.FLOAT16}


def test_the_command_with_calibration_and_json(tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(FACTORY)
    np.save(tmp_path / "few.npy", np.random.default_rng(0).random((16, 64), np.float32))
    monkeypatch.chdir(tmp_path)
    words = ["net.py:build", "--vary", "precision", "--calibration", "few.npy", "--rounds", 1, "--runs", 1]
    done = run("advise", *words, "--json")
    found = json.loads(done.stdout)
    rows = {row["form"]: row for row in found["trials"]}
    assert rows["int8"]["bytes"] < rows["usual"]["bytes"]
    assert rows["usual"]["timing"]["processor_ms"] > 0
    assert rows["bfloat16"]["timing"] is None
    assert found["command"].startswith("torch-onnx-compat export net.py:build -o model.onnx --target onnxruntime")
    wrong = run("advise", "net.py:build", "--vary", "opsets")
    assert wrong.exit_code == 2
    assert "unknown kind of form 'opsets'" in wrong.output


def test_the_command_line_names_every_kind_of_form():
    assert _KINDS == KINDS  # it is written out there so that --help imports nothing slow
