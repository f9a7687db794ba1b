"""Element types in which an engine lacks operators: how they are tried, told and asked for."""

import sys

import numpy as np
import pytest

from torch_onnx_compat import cli
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.engines.compare import HALF, difference, reference
from torch_onnx_compat.engines.measure import Sample, facts_of, run_probes
from torch_onnx_compat.engines.probes import own_probes
from torch_onnx_compat.engines.profile import measure_operators, profile
from torch_onnx_compat.engines.type_probes import BYTES, condense_types, run_type_probes, type_probes
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.profile import to_toml

NO_DOUBLE = """
import onnx
import onnxruntime
def version():
    return {version!r}
def load(path, feeds, outputs, variant):
    model = onnx.load(path)
    known = {{v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}}
    for node in model.graph.node:
        if node.op_type in ("Exp", "Tanh") and 11 in map(known.get, node.input):
            raise RuntimeError("no kernel for double")
        if node.op_type == "Sign":
            raise RuntimeError("no such operator")
    session = onnxruntime.InferenceSession(path)
    return lambda feeds: session.run(outputs, feeds)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    path.write_text(NO_DOUBLE.format(version=load_target("openvino").version))
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_OPENVINO_PYTHON", sys.executable)
    monkeypatch.setitem(ENGINES, "openvino", Engine("openvino", "numpy", ()))
    return ENGINES["openvino"]


def test_each_probe_computes_in_the_other_type_what_it_computes_in_float32():
    probes, compared = {p.name: p for p in own_probes()}, 0
    floats = [probe for probe in type_probes() if not probe.name.endswith(f"_as_{BYTES}")]
    for probe in floats[::12]:
        own, kind = probe.name.rsplit("_as_", 1)
        assert facts_of(probe)["type"] == kind
        try:
            found = reference(probe.model.SerializeToString(), probe.feeds)
        except Exception:  # onnxruntime lacks some
            continue
        compared += 1
        wanted = reference(probes[own].model.SerializeToString(), probes[own].feeds)
        assert all(not difference(a, b, HALF) for a, b in zip(found, wanted, strict=True)), probe.name
    assert compared > 30


def test_bytes_are_inputs_of_operators_that_give_the_same_in_float32():
    found = {probe.name: probe for probe in type_probes() if probe.name.endswith(f"_as_{BYTES}")}
    assert len(found) > 60
    assert not {"Add", "Conv", "Erf"} & {probe.op_type for probe in found.values()}
    probe = found["Transpose_1_as_uint8"]
    assert facts_of(probe)["type"] == "uint8"
    (fed,) = probe.feeds.values()
    assert fed.dtype == np.uint8
    assert len(set(fed.flat)) == fed.size
    attributes = [a for p in found.values() for a in p.model.graph.node[0].attribute if a.name == "reduction"]
    assert {a.s for a in attributes} <= {b"none", b"min", b"max"}


def test_only_what_runs_in_float32_is_tried():
    assert {p.op_type for p in type_probes(lambda probe: probe.op_type == "Erf")} == {"Erf"}


def test_an_engine_without_kernels_for_a_type_gets_a_table(fake, monkeypatch):
    chosen = [p for p in own_probes() if p.op_type in ("Abs", "Exp", "Tanh", "Sign") and p.position == 0]
    monkeypatch.setattr("torch_onnx_compat.engines.type_probes.own_probes", lambda: chosen)
    version, found = run_probes(fake, chosen)
    typed = run_type_probes(fake, lambda probe: probe.op_type != "Sign")
    target = profile(fake, version, found, "2026-01-01", typed)
    assert target.types == {"double": {"refused": {"Exp", "Tanh"}}}
    assert target.works == {"Abs", "Exp", "Tanh"}


def test_the_worst_verdict_of_an_operator_counts():
    def sample(op_type, verdict):
        return Sample("n", op_type, {"type": "float16"}, verdict)

    samples = [sample("Add", "refused"), sample("Add", "wrong"), sample("Mul", "works"), sample("Exp", "refused")]
    assert condense_types(samples) == {"float16": {"wrong": {"Add"}, "refused": {"Exp"}}}


def test_a_profile_tells_and_keeps_its_types(tmp_path):
    text = 'name = "n"\nopset = 17\nopsets = [11, 20]\nworks = [\n    "Add",\n    "Erf",\n]\n'
    text += '\n[types.double]\nwrong = [\n    "Erf",\n]\n'
    path = tmp_path / "n.toml"
    path.write_text(text)
    target = load_target(path)
    assert target.asks("Erf")
    assert not target.asks("Add")
    assert target.verdict("Erf", 17, {"type": "double"}) == "wrong"
    assert target.judge("Erf", 17, {"type": "double"}).reason == "wrong on n where type=double"
    assert target.verdict("Erf", 17, {"type": "float"}) == target.verdict("Erf", 17, {}) == "works"
    assert target.verdict("Add", 17, {"type": "double"}) == "works"
    assert load_again(tmp_path, target) == target
    path.write_text(text.replace("wrong", "odd"))
    with pytest.raises(CompatError, match="odd"):
        load_target(path)


def load_again(folder, target):
    (folder / "again.toml").write_text(to_toml(target))
    return load_target(folder / "again.toml")


def test_some_operators_are_measured_again_and_the_rest_stays(fake, monkeypatch):
    shipped = load_target("openvino")
    target = measure_operators(fake, own_probes(), ["Sign", "Erf"], "2026-01-01")
    assert "Sign" in shipped.works
    assert target.works == (shipped.works - {"Sign"}) | {"Erf"}
    assert [(row.op_type, row.verdict) for row in target.rows if row not in shipped.rows] == [("Sign", "refused")]
    assert {row for row in map(str, shipped.rows) if "'Erf'" not in row} <= set(map(str, target.rows))
    assert target.how.endswith("again on 2026-01-01: Erf, Sign")
    monkeypatch.setattr("torch_onnx_compat.engines.profile.load_target", lambda name: target)
    again = measure_operators(fake, own_probes(), ["Abs", "Sign"], "2026-01-01")
    assert again.how.endswith("again on 2026-01-01: Abs, Erf, Sign")
    with pytest.raises(CompatError, match="no probe tries Nothing"):
        measure_operators(fake, own_probes(), ["Nothing"], "2026-01-01")


def test_operators_are_not_measured_in_another_version(fake, monkeypatch):
    fake.path.write_text(NO_DOUBLE.format(version="0.1"))
    with pytest.raises(CompatError, match=r"is 0\.1 here, its profile of .*: measure all operators"):
        measure_operators(fake, own_probes(), ["Sign"], "2026-01-01")


def test_the_command_measures_some_operators(fake, tmp_path, capsys):
    path = tmp_path / "o.toml"
    with pytest.raises(SystemExit) as left:
        cli.main(["measure", "openvino", "--operator", "Sign", "--operator", "Erf", "-o", str(path)])
    assert left.value.code == 0
    assert "Sign" not in load_target(path).works
    assert "again on" in capsys.readouterr().out
