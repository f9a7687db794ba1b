"""Measuring, from probes to a profile and back to verdicts."""

import functools
import re
import sys

import onnx_ir as ir
import pytest

from torch_onnx_compat import cli
from torch_onnx_compat.engines import ENGINES, Engine, find_engine
from torch_onnx_compat.engines.compare import difference, reference
from torch_onnx_compat.engines.measure import Sample, rounding_decides, run_probes
from torch_onnx_compat.engines.probes import node_tests, own_probes, probes_for
from torch_onnx_compat.engines.profile import profile, rows_without_samples
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.profile import DIRECTORY
from torch_onnx_compat.targets.target import PASSED, Row, Target

OPERATORS = ("Clip", "Gemm", "Softplus", "Split")


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setenv(find_engine("onnxruntime").variable, sys.executable)


def test_probes_are_the_same_every_time():
    first, second = list(own_probes()), list(own_probes())
    assert [p.model.SerializeToString() for p in first] == [p.model.SerializeToString() for p in second]
    assert all((p.feeds[name] == q.feeds[name]).all() for p, q in zip(first, second, strict=True) for name in p.feeds)
    assert len({p.name for p in first}) == len(first)


def test_engines_that_turn_images_are_tried_behind_a_convolution():
    def named(engine):
        return {p.name: p for p in probes_for(engine, own=True)}

    plain, turned = named(find_engine("onnxruntime")), named(find_engine("tflite"))
    assert plain.keys() == {p.name for p in own_probes()}
    more = [turned[name] for name in turned.keys() - plain.keys()]
    assert {"Softmax", "Slice", "ReduceMean"} <= {p.op_type for p in more}
    for probe in more[::20]:
        alone, model = turned[probe.name.removesuffix("_convolved")], ir.from_proto(probe.model)
        assert node_facts(model.graph[probe.position], 17)["image"] == "yes"
        wanted = reference(alone.model.SerializeToString(), alone.feeds)
        found = reference(probe.model.SerializeToString(), probe.feeds)
        assert all(not difference(a, b, (1e-4, 1e-4)) for a, b in zip(found, wanted, strict=True)), probe.name


@pytest.mark.usefixtures("here")
def test_onnxruntime_runs_what_it_judges():
    engine = find_engine("onnxruntime")
    version, found = run_probes(engine, [p for p in own_probes() if p.op_type in OPERATORS])
    assert {s.verdict for s in found} == {"works"}
    target = profile(engine, version, found, "2026-01-01")
    assert target.works == set(OPERATORS)
    assert (target.rows, target.dynamic, target.measured) == ((), "yes", True)
    assert target.opsets == (11, 23)


def test_what_the_element_type_decides_is_not_held_against_the_engine():
    probes = {p.name: p for p in node_tests() if p.name in ("test_softmax_large_number", "test_softmax_example")}
    for name, decides in (("test_softmax_large_number", True), ("test_softmax_example", False)):
        probe = probes[name]
        wanted = reference(probe.model.SerializeToString(), probe.feeds)
        assert rounding_decides(find_engine("rknn"), probe, wanted) == decides
        assert not rounding_decides(find_engine("onnxruntime"), probe, wanted)


NO_CONV = """
import onnx
def version():
    return "1"
def load(path, feeds, outputs, variant):
    if any(node.op_type in ("Conv", "Exp") for node in onnx.load(path).graph.node):
        raise RuntimeError("no such operator")
    return lambda feeds: [next(iter(feeds.values())) for _ in outputs]
"""


def test_what_stands_before_a_node_is_not_held_against_it(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    path.write_text(NO_CONV)
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    probes = [p for p in own_probes() if p.op_type in ("BatchNormalization", "Exp")]
    behind = {p.name for p in probes if any(node.op_type == "Conv" for node in p.model.graph.node[: p.position])}
    assert behind
    _, found = run_probes(Engine("fake", "numpy", ()), probes)
    assert {s.name for s in found} == {p.name for p in probes} - behind
    assert {s.verdict for s in found if s.op_type == "Exp"} == {"refused"}


FLAKY = """
import os
import numpy as np
def version():
    return "1"
runs = 0
def load(path, feeds, outputs, variant):
    global runs
    runs += 1
    if "x" in feeds:  # no probe: which opsets it takes
        return lambda feeds: [feeds["x"]]
    if os.path.exists({flag!r}):
        return lambda feeds: [np.full((1, 3, 8, 8), runs)]
    open({flag!r}, "w").close()
    os.abort()
"""


def test_what_differs_from_run_to_run_is_told_without_numbers(tmp_path, monkeypatch):
    """Its first crash is not held against it; then its numbers are of no worth."""
    path = tmp_path / "fake.py"
    path.write_text(FLAKY.format(flag=str(tmp_path / "flag")))
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    probes = [p for p in own_probes() if p.op_type == "Sign"][:2]
    _, (first, second) = run_probes(Engine("fake", "numpy", ()), probes[:1] * 2)
    assert first.verdict == "wrong"
    assert (second.verdict, second.reason) == ("wrong", "its numbers differ from run to run")


@functools.cache
def measured(name):
    """What the installed engine does with every probe."""
    return run_probes(find_engine(name), probes_for(find_engine(name)))


def of_the_profile(name):
    """The profile, and samples of the version that it is of."""
    if find_engine(name).interpreter() is None:
        pytest.skip(f"{name} is not installed")
    if not (DIRECTORY / f"{name}.toml").exists():
        pytest.skip(f"no profile of {name} ships")
    target, (version, found) = load_target(name), measured(name)
    if version != target.version:
        pytest.skip(f"the profile is of {name} {target.version}, and {version} is installed")
    return target, found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ENGINES)
def test_verdicts_of_the_profile_hold(name):
    """No probe that the profile says works comes out wrong or refused; few that it refuses would have worked."""
    target, found = of_the_profile(name)
    known = [s for s in found if s.op_type in _known(target)]
    verdicts = [(s, target.verdict(s.op_type, max(18, s.facts["version"]), s.facts)) for s in known]
    assert [s.name for s, v in verdicts if v in PASSED and s.verdict not in PASSED] == []
    refused = [s for s, v in verdicts if v not in (*PASSED, "unknown")]
    assert sum(s.verdict in PASSED for s in refused) <= 0.05 * len(refused)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "opencv"])
def test_profile_measured_again_is_the_same(name):
    target, found = of_the_profile(name)
    again = profile(find_engine(name), target.version, found, target.date)
    assert again.works == target.works
    assert [(r.op_type, r.verdict, r.when) for r in again.rows] == [(r.op_type, r.verdict, r.when) for r in target.rows]


def _known(target):
    return target.works | {row.op_type for row in target.rows}


@pytest.mark.usefixtures("here")
def test_check_command(tmp_path, capsys):
    probe = next(p for p in own_probes() if p.op_type == "Softplus")
    path = tmp_path / "m.onnx"
    path.write_bytes(probe.model.SerializeToString())
    with pytest.raises(SystemExit) as left:
        cli.main(["check", str(path), "--target", "onnxruntime", "--run"])
    assert left.value.code == 0
    assert re.search(r"Softplus +1 +works", capsys.readouterr().out)


def test_check_command_names_what_is_wrong(tmp_path, capsys):
    probe = next(p for p in own_probes() if p.op_type == "Softplus")
    path, board = tmp_path / "m.onnx", tmp_path / "board.toml"
    path.write_bytes(probe.model.SerializeToString())
    board.write_text(
        'name = "board"\nopset = 13\nopsets = [11, 17]\n[[operators]]\nop = "Softplus"\nverdict = "wrong"\n'
        'when = { rank = 4 }\nsource = "page 7"\n'
    )
    with pytest.raises(SystemExit) as left:
        cli.main(["check", str(path), "--target", str(board)])
    assert left.value.code == 1
    assert re.search(r"Softplus +1 +wrong +wrong on board where rank=4 +page 7", capsys.readouterr().out)


def test_facts_of_probes_are_known():
    for probe in own_probes():
        model = ir.from_proto(probe.model)
        facts = node_facts(model.graph[probe.position], model.opset_imports[""])
        assert {"version", "rank", "type"} <= facts.keys(), probe.name


def test_rows_that_no_probe_tells_of_now_stay():
    shipped = Target("board", version="1.0", rows=(Row("If", "refused"), Row("Add", "wrong")))
    found = [Sample("a probe", "Add", {}, "works")]
    assert rows_without_samples(shipped, "1.0", found) == [Row("If", "refused")]
    assert rows_without_samples(shipped, "1.1", found) == []
