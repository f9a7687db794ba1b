"""Copies of the weights: none that nobody needs, and what one step held is gone when the next begins."""

import gc
import io
import subprocess
import sys
import warnings
import weakref

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import attempt, export_compat, memory
from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.repairs import Repairs
from torch_onnx_compat.check import verify
from torch_onnx_compat.check.file_log import FileLog
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.graph.weights import as_onnx
from torch_onnx_compat.inputs.inputs import bind
from torch_onnx_compat.memory import forget_locals, trim
from torch_onnx_compat.ops import ONNX_TYPES

X = torch.rand(2, 64)

PEAK = """
import torch
from pathlib import Path
from torch import nn
from torch_onnx_compat import export_compat

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))

def export(width, depth):
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(depth))).eval()
    Path("/proc/self/clear_refs").write_text("5")
    export_compat(model, torch.rand(2, 3, width), "model.onnx", dynamo=False)
    return 4 * depth * width * width / 2**20

export(64, 2)
before = status("VmRSS")
weights = export(4096, 4)
print((status("VmHWM") - before) / weights)
"""


def weights_of(model, monkeypatch):
    """The arrays that a file's weights are written from, by name."""
    found = {}
    draft = attempt.draft

    def spy(graph, *rest):
        found.update({name: value.const_value.numpy() for name, value in graph.graph.initializers.items()})
        return draft(graph, *rest)

    monkeypatch.setattr(attempt, "draft", spy)
    export_compat(model, X, dynamo=False)
    return found


def test_the_graph_shares_the_model_s_weights(monkeypatch):
    model = nn.Linear(64, 64).eval()
    found = weights_of(model, monkeypatch)["weight"]
    assert found.__array_interface__["data"][0] == model.weight.data_ptr()
    assert not found.flags.writeable


@pytest.mark.parametrize("dtype", ONNX_TYPES)
def test_weights_of_every_type(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype).t()
    shared = as_onnx(tensor, "w")
    assert shared.shape.numpy() == (3, 2)
    assert shared.dtype == ONNX_TYPES[dtype]
    np.testing.assert_array_equal(shared.numpy().astype(np.float64), tensor.double().numpy())


def test_torch_s_exporter_is_put_back():
    raw = torch._C.Graph._export_onnx
    with warnings.catch_warnings(), internals.without_weights(lambda weight: True) as left_out:
        warnings.simplefilter("ignore")
        torch.onnx.export(nn.Linear(64, 64), (X,), io.BytesIO(), dynamo=False)
    assert torch._C.Graph._export_onnx is raw
    with pytest.raises(ZeroDivisionError), internals.without_weights(lambda weight: True):
        raise ZeroDivisionError
    assert torch._C.Graph._export_onnx is raw
    assert {tensor.shape for tensor in left_out.values()} == {(64, 64), (64,)}


def test_a_trace_lets_go_of_views():
    wholes, alive = [], []

    class Model(nn.Module):
        def forward(self, x):
            with Repairs():
                result = x.sum()
                for _ in range(3):
                    whole = x * 2
                    wholes.append(weakref.ref(whole))
                    result = result + whole.view(-1).sum() + whole.t()[1:].sum()
                alive.extend(reference() is not None for reference in wholes)
            return result

    internals.trace(Model(), (X,))
    assert alive == [False, False, True]


def test_no_weights_are_held_while_the_file_is_checked(monkeypatch):
    graphs = []
    draft, check = attempt.draft, attempt.verify_file

    def spy(graph, *rest):
        graphs.append(graph)
        return draft(graph, *rest)

    def checked(*args):
        assert [value.const_value for value in graphs[0].graph.initializers.values()] == [None, None]
        return check(*args)

    monkeypatch.setattr(attempt, "draft", spy)
    monkeypatch.setattr(attempt, "verify_file", checked)
    assert export_compat(nn.Linear(64, 64).eval(), X).table
    assert graphs


def test_a_failed_attempt_s_session_is_closed(monkeypatch):
    """Before the other back end begins, and before the place is looked for."""
    compare_outputs = verify.compare_outputs
    sessions = []

    def failing(*args, **options):
        rows = compare_outputs(*args, **options)
        sessions.append(live_sessions())
        if len(sessions) == 1:
            raise VerificationError("off")
        return rows

    def live_sessions():
        return sum(type(item) is onnxruntime.InferenceSession for item in gc.get_objects())

    before = live_sessions()
    monkeypatch.setattr(verify, "compare_outputs", failing)
    result = export_compat(nn.Linear(64, 64).eval(), X)
    assert result.exporter == "dynamo"
    assert set(sessions) == {before + 1}


def test_forgotten_locals():
    class Held:
        pass

    held = []

    def inner():
        mine = Held()
        held.append(weakref.ref(mine))
        raise ValueError

    def outer():
        mine = Held()
        held.append(weakref.ref(mine))
        try:
            inner()
        except ValueError as error:
            raise KeyError from error

    with pytest.raises(KeyError) as caught:
        outer()
    assert all(reference() is not None for reference in held)
    forget_locals(caught.value)
    assert all(reference() is None for reference in held)
    assert caught.value.__traceback__ is not None


def test_large_files_are_opened_without_folding(tmp_path, monkeypatch):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(256, 64))

        def forward(self, x):
            return x @ (self.weight / self.weight.norm(dim=1, keepdim=True)).t()

    seen = []
    opened = verify.open_session
    monkeypatch.setattr(verify, "open_session", lambda path, **o: seen.append(o) or opened(path, **o))
    export_compat(Model(), X, tmp_path / "a.onnx")
    monkeypatch.setattr(verify, "FOLDING_LIMIT", 1000)
    assert export_compat(Model(), X, tmp_path / "a.onnx", external_data=True).table
    assert [options["disabled_optimizers"] for options in seen] == [None, ["ConstantFolding"]]


def test_tensors_inside_a_file_with_weights_beside_it(tmp_path):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).eval()
    result = export_compat(model, X, tmp_path / "a.onnx", external_data=True)
    log = FileLog.open(result.path, bind(model, (X,), None, None))
    log.read(list(log.makers))
    assert len(log.values) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own count of the peak")
def test_peak(tmp_path):
    """The caller's model, and onnxruntime's while it is laid out; torch's exporter alone would hold five."""
    done = subprocess.run([sys.executable, "-c", PEAK], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 3.3


@pytest.mark.parametrize("is_there", [True, False])
def test_trim(monkeypatch, is_there):
    """Where the C library has malloc_trim, it is asked to give everything back; elsewhere nothing happens."""
    asked = []
    monkeypatch.setattr(memory, "_malloc_trim", lambda: asked.append if is_there else None)
    trim()
    assert asked == [0] * is_there
