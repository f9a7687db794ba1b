"""An engine runs in a process of its own, and may crash or hang in it."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from torch_onnx_compat.check.on_target import EngineSession
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess, find_engine
from torch_onnx_compat.engines.compare import difference, judge
from torch_onnx_compat.engines.process import Outcome
from torch_onnx_compat.errors import CompatError

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def model():
    info = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [next(info)], [next(info)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture
def here(monkeypatch):
    """Engines run in the tests' own interpreter."""
    for name in ENGINES:
        monkeypatch.setenv(find_engine(name).variable, sys.executable)


@pytest.mark.parametrize("name", ENGINES)
def test_adapter(name):
    engine = find_engine(name)
    if engine.interpreter() is None:
        pytest.skip(f"{name} is not installed")
    with EngineProcess(engine) as process:
        outcome = process.run(model(), {"x": X}, ["y"])
        assert process.version
        if engine.builds:
            with pytest.raises(CompatError, match="no file to time"):
                process.time(2)
        else:
            assert len(process.time(2)) == 2
    assert judge(outcome, [np.maximum(X, 0)], engine.tolerance) == ("built" if engine.builds else "works", "")


def test_ncnn_reads_halves_as_long_as_they_are():
    engine = find_engine("ncnn")
    if engine.interpreter() is None:
        pytest.skip("ncnn is not installed")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 3]) for name in ("x", "y")]
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    swish = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with EngineProcess(engine, fills=True) as process:
        outcome = process.run(swish.SerializeToString(), {"x": X.astype(np.float16)}, ["y"])
    assert judge(outcome, [X / (1 + np.exp(-X))], (1e-3, 1e-3)) == ("works", "")


@pytest.mark.usefixtures("here")
def test_a_file_stays_loaded_for_inputs_alike(tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(model())
    with EngineProcess(find_engine("onnxruntime")) as process:
        first = process.run(path, {"x": X}, ["y"])
        again = process.run(path, {"x": -X}, ["y"])
        assert (again.loading, again.status) == (first.loading, "ran")
        np.testing.assert_array_equal(again.outputs[0], np.maximum(-X, 0))
        text = model().replace(b"Relu", b"Sqrt")  # the same path, size and inputs
        path.write_bytes(text)
        np.testing.assert_array_equal(process.run(path, {"x": abs(X)}, ["y"]).outputs[0], np.sqrt(abs(X)))
        assert process.run(path, {"x": X[:1]}, ["y"]).status == "refused"
        assert process.run(path, {"x": abs(X)}, ["y"]).status == "ran"


@pytest.mark.usefixtures("here")
def test_what_the_engine_says_is_told():
    with EngineProcess(find_engine("onnxruntime")) as process:
        outcome = process.run(b"no model", {"x": X}, ["y"])
        assert outcome.status == "refused"
        assert "InvalidProtobuf" in outcome.error
        with pytest.raises(CompatError, match="the last one did not run"):
            process.time(1)
        assert process.run(model(), {"x": X}, ["y"]).status == "ran"


ADAPTER = """
import os, time
def version():
    return "1"
def load(path, feeds, outputs, variant):
    if feeds["x"][0] < 0:
        os.abort()
    if feeds["x"][0] > 0:
        time.sleep(60)
    print("engines print what they like")
    return lambda feeds: [feeds["x"]]
"""


def test_crashes_and_hangs(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    path.write_text(ADAPTER)
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    with EngineProcess(Engine("fake", "numpy", ()), limit=2.0) as process:
        for value, status in ((-1, "crashed"), (0, "ran"), (1, "crashed"), (0, "ran")):
            assert process.run(b"", {"x": np.array([value])}, ["y"]).status == status


GROWS = """
def version():
    return "1"
def load(path, feeds, outputs, variant):
    runs = []
    def run(feeds):
        runs.append(feeds["x"])
        return [feeds["x"] * (1e30 if len(runs) == 1 else 1)]
    return run
"""


def test_a_first_run_that_is_wrong_alone_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "fake.py"
    path.write_text(GROWS)
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    file = tmp_path / "a.onnx"
    file.write_bytes(model())
    with EngineProcess(Engine("fake", "numpy", ())) as process:
        for found in ("wrong", "its first run is not like the next one: off by 1e+30"), ("works", ""):
            assert judge(process.run(file, {"x": X}, ["y"]), [X], (1e-3, 1e-3)) == found
        feeds = {"x": onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))}
        session = EngineSession(process, file)
        with pytest.raises(RuntimeError, match="its first run is not like the next one"):
            session.run_with_ort_values(["y"], feeds)


def test_engine_that_is_not_installed(monkeypatch):
    engine = Engine("absent", "no_such_module", ())
    with pytest.raises(
        CompatError, match=r"engine 'absent' is not installed; `torch-onnx-compat measure absent --inst"
    ):
        EngineProcess(engine)


def test_install_asks_pip_and_npm(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setenv("TORCH_ONNX_COMPAT_ENGINES", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command) or SimpleNamespace(returncode=0))
    engine = Engine("board", "board", ("one",), alone=("two", "three"), npm=("four",))
    assert engine.install() == tmp_path / "board"
    _, pip, alone, npm = asked
    assert pip[-2:] == ["numpy", "one"]
    assert alone[-3:] == ["--no-deps", "two", "three"]
    assert npm == ["npm", "install", "--silent", "--prefix", str(tmp_path / "board"), "four"]
    monkeypatch.setattr(subprocess, "run", lambda command, **_: SimpleNamespace(returncode="three" in command))
    with pytest.raises(CompatError, match=r"engine 'board': `.*--no-deps` could not install two, three; see above"):
        engine.install()


PARENT = """
import subprocess, sys, time
def version():
    return "1"
def load(path, feeds, outputs, variant):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    open({flag!r}, "w").write(str(child.pid))
    time.sleep(60)
"""


def test_what_a_hanging_engine_started_ends_with_it(tmp_path, monkeypatch):
    path, flag = tmp_path / "fake.py", tmp_path / "flag"
    path.write_text(PARENT.format(flag=str(flag)))
    monkeypatch.setattr(Engine, "path", path)
    monkeypatch.setenv("TORCH_ONNX_COMPAT_FAKE_PYTHON", sys.executable)
    with EngineProcess(Engine("fake", "numpy", ()), limit=2.0) as process:
        assert process.run(b"", {"x": X}, ["y"]).status == "crashed"
    state = Path(f"/proc/{flag.read_text()}/stat")
    end = time.monotonic() + 10  # of a busy machine, which ends it when it comes to it
    while not (ended := _has_ended(state)) and time.monotonic() < end:
        time.sleep(0.05)
    assert ended


def _has_ended(state):
    try:
        return state.read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_unknown_engine():
    with pytest.raises(CompatError, match=r"unknown engine 'openvin'; did you mean 'openvino'\?"):
        find_engine("openvin")
    with pytest.raises(CompatError, match=r"^qnn cannot be run here: there is no adapter for it\. There are: onnxr"):
        find_engine("qnn")


@pytest.mark.parametrize(
    ("found", "right", "reason"),
    [
        (X, X, ""),
        (X + 1e-4, X, ""),
        (X + 1, X, "off by 1"),
        (X[None], X, "shape (1, 2, 3), wanted (2, 3)"),
        (np.array([2.0]), np.array(2.0), ""),
        (np.array([np.nan]), np.array([1.0]), "NaN or infinities stand elsewhere"),
        (np.array([np.inf]), np.array([np.inf]), ""),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 values differ"),
        (np.array([1, np.nan], np.float32), np.array([1, 3]), "1 of 2 values differ"),
    ],
)
def test_difference(found, right, reason):
    assert difference(found, right, (1e-3, 5e-4)) == reason


def test_verdicts():
    right = [X]
    assert judge(Outcome("refused", error="no"), right, (0, 0)) == ("refused", "no")
    assert judge(Outcome("crashed", error="dead"), right, (0, 0)) == ("crashes", "dead")
    assert judge(Outcome("ran", ()), right, (0, 0)) == ("wrong", "0 outputs, wanted 1")
