"""A run has real tensors beside its fakes only where somebody asks for values, and asks the same without them."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from symbolic_runs import Module
from torch import nn

from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.beside import BesideMeta
from torch_onnx_compat.questions.run import SymbolicRuns, run_symbolically

DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


def observe(model, x=None):
    x = torch.randn(3, 3, 16, 24) if x is None else x
    return Observation(
        prepare(model.eval(), (x,), dynamic={"x": {n: s for n, s in DYNAMIC["x"].items() if n < x.dim()}})
    )


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("table", torch.randn(64, 8))

    def forward(self, x):
        x = F.relu_(self.norm(self.conv(x)))
        x = F.interpolate(x, scale_factor=0.5) if x.shape[3] > 10 else x
        rows = x.flatten(2).transpose(1, 2)
        rows = rows + self.table[: rows.shape[1]]
        return self.attention(rows, rows, rows)[0].contiguous().view(x.shape[0], -1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(3, 5, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x[:, :, :, 0].transpose(1, 2))[0].sum(1) * len(x)


WITHOUT = {
    "layers": Layers(),
    "recurrent": Recurrent(),
    "views": Module(lambda x: x.permute(0, 2, 3, 1)[:, ::2].reshape(x.shape[0], -1, 6).unfold(1, 4, 2)),
    "made": Module(lambda x: torch.cat([x, torch.zeros(x.shape, device=x.device), torch.arange(x.shape[3]) * x], 1)),
    "device": Module(lambda x: torch.cat([x, torch.zeros(1, 3, 16, 24, device=x.device).expand_as(x)], 1)),
    "quantile": Module(lambda x: torch.quantile(x, 0.3) + torch.ones(x.shape[2], device=x.device)),
    "channels last": Module(lambda x: x.to(memory_format=torch.channels_last).mul(2).reshape(-1, 6)),
    "in place": Module(lambda x: x.clone().add_(1)[:, :, 1:].mul_(x[:, :, 1:]).flatten(1)),
    "repeats": Module(lambda x: x.repeat_interleave(torch.tensor([1, 2, 3]), 1).reshape(-1, 6)),
    "constant": Module(lambda x: x[:, torch.tensor([2, 0])] * torch.linspace(0, 1, 24)[: x.shape[3]]),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_it_asks_the_same_without_values(name):
    with export_conditions():
        observation = observe(WITHOUT[name])
        runs = [run_symbolically(observation, observation.trace_inputs(), try_without=tries) for tries in (True, False)]
    assert [run.has_values for run in runs] == [False, True]
    assert runs[0].obstacle == runs[1].obstacle
    assert not runs[0].obstacle or name == "quantile"  # of which older versions of torch have no form for fakes
    without, beside_real = ([(q.kind, q.expression, q.answer, q.operator) for q in run.questions] for run in runs)
    assert without
    assert without == beside_real


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(3, 3, 16, 24))

    def forward(self, x):
        self.state[:1] = x[:1]
        return x + self.state.sum()


def catches(x):
    try:
        return x.as_strided((2,), (1,), 10**9)
    except RuntimeError:
        return x * 2 if x.shape[2] > 40 else x


def suppresses(x):
    with contextlib.suppress(RuntimeError):
        return x.as_strided((2,), (1,), 10**9)
    return x * 2 if x.shape[2] > 40 else x


NEEDS = {
    "bool": lambda x: x * 2 if x.sum() > 0 else x,
    "item": lambda x: x[:, : int(x[0, 0, 0, 0].abs().item()) + 1],
    "selection": lambda x: x[x > 0].sum() * (2 if x.shape[2] > 40 else 1),
    "numpy": lambda x: x * float(x.numpy().max()),
    "equal": lambda x: x * 2 if torch.equal(x, x.abs()) else x,
    "error caught": catches,
    "error suppressed": suppresses,
    "write": Writes(),
}


@pytest.mark.parametrize("name", NEEDS)
def test_real_tensors_tell_what_needs_values(name):
    model = NEEDS[name]
    with export_conditions():
        observation = observe(model if isinstance(model, nn.Module) else Module(model))
        runs = [run_symbolically(observation, observation.trace_inputs(), try_without=tries) for tries in (True, False)]
    assert [run.has_values for run in runs] == [True, True]
    one, other = ([str(q) for q in run.questions] for run in runs)
    assert one == other
    if "error" in name:
        assert any("height > 40" in text for text in one)


def test_a_model_that_asks_once_is_not_tried_without_again(monkeypatch):
    tried = []
    plain = BesideMeta.fake_input
    monkeypatch.setattr(BesideMeta, "fake_input", lambda *args: tried.append(1) or plain(*args))
    with export_conditions():
        runs = SymbolicRuns(observe(Module(NEEDS["bool"])))
        runs.at({})
        runs.at({"batch": 5})
    assert len(tried) == 1
