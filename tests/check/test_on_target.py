"""A file is run in the engine that it was made for, whole and cut, and what is wrong there fails the export."""

import sys
from dataclasses import replace

import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import Int8, export_compat
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess, find_engine
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.targets import Target, load_target

IMAGE = torch.linspace(-2, 2, 3 * 8 * 10).reshape(1, 3, 8, 10)


class Net(nn.Module):
    """Scales an image to [-1, 1], convolves and pools it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x / 127.5 - 1).relu().mean((2, 3))


def installed(name):
    if find_engine(name).interpreter() is None:
        pytest.skip(f"{name} is not installed")


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setenv(find_engine("onnxruntime").variable, sys.executable)


@pytest.mark.usefixtures("here")
def test_every_case_is_run():
    result = export_compat(Net().eval(), IMAGE, target="onnxruntime", verify="target", dynamic={"x": {0: "batch"}})
    cases = {row.case for row in result.table}
    plain = {case for case in cases if " on onnxruntime " not in case}
    on_target = {case.partition(" on onnxruntime ")[0] for case in cases - plain}
    assert "example" in on_target
    assert len(on_target) > 1
    assert not plain - on_target - {"zeros", "negative zeros", "a few zeros", "equal values", "sorted values"}


@pytest.mark.parametrize("name", ["openvino", "opencv"])
def test_engine(name):
    installed(name)
    result = export_compat(Net().eval(), IMAGE, target=name, verify="target")
    assert any(row.case.startswith(f"example on {name} ") and row.ok for row in result.table)


class Wrong(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x):
        if self.name == "openvino":
            return torch.linalg.vector_norm(x, 1, (0, 2))
        return nn.functional.interpolate(x, (3, 30), mode="bilinear")


@pytest.mark.parametrize(("name", "opset"), [("openvino", 17), ("opencv", 17)])
def test_what_the_profile_avoids_is_wrong_without_it(name, opset, tmp_path):
    """The engine's own profile writes a file that is right; one that knows nothing, a file that is wrong."""
    installed(name)
    model, path = Wrong(name).eval(), tmp_path / "model.onnx"
    x = IMAGE.repeat(1, 6, 1, 1)[:, :16, :1].clone()
    result = export_compat(model, x, path, target=name, opset_version=opset, verify="target")
    assert any(" on " in row.case for row in result.table)
    before = path.read_bytes()
    naive = Target(name, opset=opset, opsets=load_target(name).opsets)
    with pytest.raises(VerificationError, match=f"{name} computes something else, case 'example', output 'output'"):
        export_compat(model, x, path, target=naive, exporter="torchscript", verify="target")
    assert path.read_bytes() == before


@pytest.mark.usefixtures("here")
def test_a_cut_file_is_run_between_the_stages():
    result = export_compat(Net().eval(), IMAGE, target="onnxruntime", verify="target", preprocess="extract")
    assert result.preprocess is not None
    assert any(row.case.startswith("example on onnxruntime ") for row in result.table)


BROKEN = """
import onnxruntime
def version():
    return "1"
def load(path, feeds, outputs, variant):
    if {refuses}:
        raise ValueError("no such operator")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda feeds: [a + 0.1 for a in session.run(outputs, feeds)]
"""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("refuses", "options", "message"),
    [
        (False, {}, "onnxruntime computes something else, case 'example', output 'output': 4 of 4 values differ"),
        (False, {"preprocess": "extract"}, "onnxruntime computes something else, case 'example', output 'output'"),
        (True, {}, "onnxruntime does not run the file, case 'example': ValueError: no such operator"),
    ],
)
def test_what_the_engine_gets_wrong_fails_the_export(refuses, options, message, tmp_path, monkeypatch):
    adapter, path = tmp_path / "adapter.py", tmp_path / "model.onnx"
    adapter.write_text(BROKEN.format(refuses=refuses))
    monkeypatch.setattr(Engine, "path", adapter)
    with pytest.raises(VerificationError, match=message) as caught:
        export_compat(Net().eval(), IMAGE, path, exporter="torchscript", verify="target", **options)
    assert not path.exists()
    assert any(" on onnxruntime 1" in row.case and not row.ok for row in caught.value.table)


COARSE = """
import numpy as np
import onnxruntime
def version():
    return "1"
def load(path, feeds, outputs, variant):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda feeds: [a.astype(np.float16).astype(a.dtype) + {off} for a in session.run(outputs, feeds)]
"""


@pytest.mark.parametrize(("off", "is_right"), [(0, True), (0.01, False)])
def test_an_engine_in_float16_may_be_as_far_off_as_eager_torch_is(off, is_right, tmp_path, monkeypatch):
    """Without a tolerance of its own, it is judged by a run of the original in float16."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(COARSE.format(off=off))
    coarse = Engine("onnxruntime", "sys", (), tolerance=(1e-7, 1e-7), computes_in="float16")
    monkeypatch.setattr(Engine, "path", adapter)
    monkeypatch.setattr(Engine, "interpreter", lambda self: sys.executable)
    monkeypatch.setitem(ENGINES, "onnxruntime", coarse)
    if not is_right:
        with pytest.raises(VerificationError, match="onnxruntime computes something else"):
            export_compat(Net().eval(), IMAGE, verify="target")
        return
    rows = [row for row in export_compat(Net().eval(), IMAGE, verify="target").table if " on " in row.case]
    assert {row.tolerance for row in rows} == {"4 x noise"}
    assert rows[0].detail.endswith("x eager's own rounding error in float16")


def test_a_coarse_engine_that_computes_in_float32_is_wrong(tmp_path, monkeypatch):
    adapter = tmp_path / "adapter.py"
    adapter.write_text(COARSE.format(off=0.01))
    monkeypatch.setattr(Engine, "path", adapter)
    monkeypatch.setattr(Engine, "interpreter", lambda self: sys.executable)
    monkeypatch.setitem(ENGINES, "onnxruntime", Engine("onnxruntime", "sys", (), tolerance=(1e-7, 1e-7)))
    with pytest.raises(VerificationError, match="onnxruntime computes something else"):
        export_compat(Net().eval(), IMAGE, verify="target")


def test_what_rounding_excuses_in_onnxruntime_it_excuses_in_an_engine(tmp_path, monkeypatch):
    """Beyond the engine's tolerance, eager torch's own error counts: here the engine is onnxruntime itself."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(BROKEN.format(refuses=False).replace("a + 0.1", "a * (1 + 2e-7)"))
    monkeypatch.setattr(Engine, "path", adapter)
    monkeypatch.setattr(Engine, "interpreter", lambda self: sys.executable)
    monkeypatch.setitem(ENGINES, "onnxruntime", Engine("onnxruntime", "sys", (), tolerance=(1e-9, 1e-9)))
    rows = [row for row in export_compat(Net().eval(), IMAGE, verify="target").table if " on " in row.case]
    assert rows
    assert all(row.ok for row in rows)


def test_an_engine_that_is_not_there_is_a_note(monkeypatch):
    monkeypatch.setattr(Engine, "interpreter", lambda self: None)
    result = export_compat(Net().eval(), IMAGE, target="openvino", verify="target")
    assert "not run on openvino: it is not installed; run torch-onnx-compat measure openvino --install." in result.notes


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("precision", ["float16", Int8([torch.rand(1, 3, 8, 10) * 200 for _ in range(8)])])
def test_the_narrow_file_is_what_the_engine_runs(precision, monkeypatch):
    types = []

    def note_types(process, path, *args):
        graph = onnx.load(path).graph
        types.append({n.op_type for n in graph.node} | {t.data_type for t in graph.initializer})
        return run(process, path, *args)

    run = EngineProcess.run
    monkeypatch.setattr(EngineProcess, "run", note_types)
    result = export_compat(Net().eval(), IMAGE * 100, target="onnxruntime", verify="target", precision=precision)
    assert any(" on onnxruntime " in row.case and row.ok for row in result.table)
    narrow = onnx.TensorProto.FLOAT16 if precision == "float16" else "DequantizeLinear"
    assert types
    assert all(narrow in found for found in types)


@pytest.mark.usefixtures("here")
def test_a_narrow_file_that_the_engine_computes_otherwise_is_wrong(monkeypatch):
    def run_wrongly(process, path, *args):
        outcome = run(process, path, *args)
        return replace(outcome, outputs=tuple(array * 1.1 for array in outcome.outputs), first=())

    run = EngineProcess.run
    monkeypatch.setattr(EngineProcess, "run", run_wrongly)
    with pytest.raises(VerificationError, match="onnxruntime computes something else"):
        export_compat(Net().eval(), IMAGE * 100, target="onnxruntime", verify="target", precision="float16")
