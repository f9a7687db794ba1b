"""Writes to attributes that share memory, and to those that are no buffers, are in the files of both exporters."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import ArgumentError

BOTH = pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])


class Row(nn.Module):
    """A view of a buffer is written, and the buffer is read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 8))
        self.row = self.rows[1]

    def forward(self, x):
        self.row.add_(x.sum(0))
        return x + self.rows.sum(0)


class RowRead(Row):
    def forward(self, x):
        self.rows.add_(x.sum())
        return x * self.row


class RowByDecision(Row):
    def forward(self, x):
        if x.sum() > 0:
            self.row.add_(x.sum(0))
        return x + self.rows.sum(0)


class Flattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(2, 4))
        self.flat = self.table.view(-1)

    def forward(self, x):
        self.table[1] = x.sum()
        return x + self.flat


class Column(nn.Module):
    """Two buffers, one of them a column of the other."""

    def __init__(self):
        super().__init__()
        self.register_buffer("history", torch.ones(8, 4))
        self.register_buffer("last", self.history[:, -1:])

    def forward(self, x):
        self.last.copy_(x.mean(0)[:, None])
        return x + self.history.sum(1)


class TurnedWindow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(4, 8, 6))
        self.window = self.memory[1, :, ::2].t()

    def forward(self, x):
        self.window.add_(x.sum(0))
        return x + self.memory.sum((0, 2))


class OfParts(nn.Module):
    """Parts of the model write to rows of one memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(2, 8))
        self.parts = nn.ModuleList(nn.Module() for _ in range(2))
        for part, row in zip(self.parts, self.memory, strict=True):
            part.register_buffer("slot", row)

    def forward(self, x):
        for part, value in zip(self.parts, (x.amax(0), x.amin(0)), strict=True):
            part.slot.copy_(value)
        return x * self.memory.sum(0)


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(8))
        self.b = nn.Parameter(self.a.data.view(2, 4))

    def forward(self, x):
        with torch.no_grad():
            self.a.mul_(2)
        return x + self.b.sum()


class Scratch(nn.Module):
    """No buffer, and a view of it."""

    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(4, 8)
        self.first = self.scratch[0]

    def forward(self, x):
        self.scratch.zero_()
        self.first.add_(x.sum(0))
        return x + self.scratch.sum(0)


class Alone(nn.Module):
    """No buffer, under two names."""

    def __init__(self):
        super().__init__()
        self.scratch = self.second_name = torch.zeros(8)

    def forward(self, x):
        self.scratch.copy_(x.sum(0))
        return x + self.second_name


@BOTH
@pytest.mark.parametrize(
    "kind", [Row, RowRead, RowByDecision, Flattened, Column, TurnedWindow, OfParts, Parameters, Scratch, Alone]
)
def test_what_is_written_is_read_under_the_other_name(kind, exporter):
    model = kind().eval()
    before = {name: value.clone() for name, value in vars(model).items() if isinstance(value, torch.Tensor)}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    result = export_compat(model, torch.rand(3, 8), dynamic={"x": {0: "rows"}}, exporter=exporter)
    torch.testing.assert_close(dict(model.state_dict()), state)
    torch.testing.assert_close({name: getattr(model, name) for name in before}, before)
    for rows in (1, 3, 5):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(result(x)[0], kind()(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("state", ["rows", "row"])
def test_a_state_that_shares_memory_is_refused(state):
    with pytest.raises(ArgumentError, match=r"state: 'rows?' and 'rows?' share memory"):
        export_compat(Row().eval(), torch.rand(3, 8), dynamic={"x": {0: "n"}}, state=[state])


class Tied(nn.Module):
    """Nothing is written: the weight is one initializer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.turned = self.layer.weight.t()

    def forward(self, x):
        return self.layer(x) @ self.turned


@BOTH
def test_what_is_only_read_stays(exporter, monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.backends.written_attributes._viewing", None)
    export_compat(Tied().eval(), torch.rand(3, 8), dynamic={"x": {0: "rows"}}, exporter=exporter)
