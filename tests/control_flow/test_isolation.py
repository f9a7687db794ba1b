"""Rewriting leaves nothing behind: not in the model, its classes, its functions or its modules."""

import sys
import threading

import pytest
import torch
from torch import nn

from control_flow import programs
from torch_onnx_compat import export_compat, plan
from torch_onnx_compat.control_flow.run.session import current
from torch_onnx_compat.errors import CompatError, UnsupportedError


class Decides(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return programs.halved(x)
        return x - 1


class Refused(nn.Module):
    def __init__(self):
        super().__init__()
        self.state, self.states = None, {}

    def forward(self, x):
        if programs.halved(x).sum() > 0:
            self.state = x
            self.states["x"] = x
        return x


class Plain(nn.Module):
    def forward(self, x):
        if x.dim() == 2 and x.shape[1] == 4:
            return x * 2
        return x


def surroundings(*models):
    functions = [type(m).forward for m in models] + [programs.halved, programs.shifted]
    codes = [(id(f), id(f.__code__), f.__defaults__, dict(vars(f))) for f in functions]
    attributes = [(type(m), {**vars(m)}, sorted(vars(type(m)))) for m in models]
    return codes, attributes, dict(vars(programs)), current(), len(torch.overrides._get_current_function_mode_stack())


def test_after_success(exporter):
    model = Decides().eval()
    before = surroundings(model)
    result = export_compat(model, torch.rand(3, 4), exporter=exporter)
    assert surroundings(model) == before
    (note,) = [n for n in result.applied if n.entry == "control_flow"]
    assert note.reason == "masked"
    assert any("test_isolation.py" in place for place in note.places)


def test_after_a_refusal(exporter):
    model = Refused().eval()
    before = surroundings(model)
    with pytest.raises(UnsupportedError, match=r"self.states\['x'\] is changed"):
        export_compat(model, torch.rand(3, 4), exporter=exporter)
    assert surroundings(model) == before


def test_after_an_error_in_the_exporter(exporter, monkeypatch):
    model = Decides().eval()
    before = surroundings(model)
    with monkeypatch.context() as patch:
        name = "torch.export.export" if exporter == "dynamo" else "torch.onnx.export"
        patch.setattr(name, lambda *args, **kwargs: 1 / 0)
        with pytest.raises(CompatError):
            export_compat(model, torch.rand(3, 4), exporter=exporter)
    assert surroundings(model) == before


def test_a_model_without_decisions_is_left_alone(exporter):
    """Decisions on fixed sizes and flags are no reason to rewrite anything, and cost nothing."""
    on = export_compat(Plain().eval(), torch.rand(3, 4), exporter=exporter, dynamic="batch")
    off = export_compat(Plain().eval(), torch.rand(3, 4), exporter=exporter, dynamic="batch", control_flow=False)
    assert on.model_bytes == off.model_bytes
    assert "control flow" not in on.seconds


def test_switched_off(exporter):
    with pytest.raises(UnsupportedError):
        export_compat(Decides().eval(), torch.rand(3, 4), exporter=exporter, control_flow=False)


def test_an_accepted_decision_is_not_masked():
    with pytest.raises(UnsupportedError) as refusal:
        export_compat(Decides().eval(), torch.rand(3, 4), exporter="torchscript", control_flow=False)
    places = [part.split(": ")[0] for part in str(refusal.value).split("its value for the example: ")[1].split("; ")]
    result = export_compat(Decides().eval(), torch.rand(3, 4), exporter="torchscript", allow_baked=places)
    assert not [n for n in result.applied if n.entry == "control_flow"]


def test_other_threads_run_the_model_as_it_is():
    """While one thread exports, the exchanged functions do in another what they always did."""
    model, x = Decides().eval(), -torch.rand(3, 4)
    wanted, wrong = model(x), []
    done = threading.Event()

    def work():
        while not done.is_set():
            if not torch.equal(model(x), wanted):
                wrong.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        export_compat(model, torch.rand(3, 4), exporter="torchscript")
    finally:
        done.set()
        thread.join()
    assert not wrong


def test_the_plan_shows_the_source():
    model = Decides().eval()
    before = surroundings(model)
    shown = plan(model, torch.rand(3, 4), show_source=True)
    assert "-    if x.sum() > 0:" in shown.source
    assert "+    return _rt.branch(_rt.compare(x.sum(), '>', 0)" in shown.source
    assert "test_isolation.py" in shown.source
    assert shown.source in str(shown)
    assert not plan(model, torch.rand(3, 4)).source
    assert surroundings(model) == before


def test_tracebacks_show_the_users_lines():
    with pytest.raises(CompatError) as error:
        export_compat(Broken().eval(), torch.rand(3, 4), exporter="torchscript")
    line = Broken.forward.__code__.co_firstlineno + 2
    assert f"test_isolation.py:{line}" in str(error.value)


class Broken(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x[:, : int(x.sum()) + 1] @ x
        return x


def test_a_check_that_is_lost_is_noted():
    result = export_compat(
        programs.PROGRAMS["raise_guard"].model, torch.rand(3, 4), exporter="torchscript", dynamic="batch"
    )
    assert any("is not made in the file" in note for note in result.notes)


def test_python_does_not_import_the_runtime_into_user_modules():
    export_compat(Decides().eval(), torch.rand(3, 4), exporter="torchscript")
    assert "_rt" not in vars(sys.modules[Decides.__module__])
