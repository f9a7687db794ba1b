# ruff: noqa: SIM108 - the statements are what is tested
"""Loops whose number of rounds depends on the inputs come out right for every number of rounds."""

import pytest
import torch
from torch import Tensor, nn

from control_flow.loop_programs import GROWING, LOOPS
from control_flow.programs import SIZES, Program
from control_flow.test_programs import check, outputs
from torch_onnx_compat import export_compat

scripting = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script:FutureWarning",
    "ignore:`torch.jit.script:DeprecationWarning",
)


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "collatz" else ()) for n in LOOPS])
def test_right_for_every_number_of_rounds(name, exporter):
    check(LOOPS[name], exporter)


@pytest.mark.parametrize("name", GROWING)
def test_sizes_that_differ_from_round_to_round(name):
    check(GROWING[name], "torchscript")


class EqualPieces(nn.Module):
    def forward(self, x):
        return torch.cat(x.split(2), 1).sum(1), torch.stack(torch.split(x, 2), 1)


class PiecesWithNames(nn.Module):
    def forward(self, x):
        first, second = x.split(5)
        return first.sum(0) - second.sum(0)


@pytest.mark.parametrize(
    ("model", "dynamic", "sizes"),
    [
        (EqualPieces(), "batch", (4, 2, 8, 1)),
        (PiecesWithNames(), {"x": {0: ("n", 6, 10)}}, (10, 6, 9)),
    ],
)
def test_pieces_of_sizes_that_the_model_takes(model, dynamic, sizes):
    samples = tuple((torch.randn(size, 4),) for size in sizes)
    result = export_compat(model, samples[0], dynamic=dynamic, exporter="torchscript")
    for (sample,) in samples:
        found = result.session().run(None, {"x": sample.numpy()})
        for one, other in zip(found, outputs(model(sample)), strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other)


@pytest.mark.dynamo_from("2.9", "scan is not exported")
def test_one_body_in_the_file():
    result = export_compat(LOOPS["RowsAppended"].model, torch.randn(3, 4), dynamic="batch", exporter="dynamo")
    assert result.nodes["Scan"] == 1
    assert result.nodes["MatMul"] == 1
    assert [note.reason for note in result.applied if note.entry == "control_flow"] == ["Loop"]


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        total = x[0]
        for i in range(1, x.size(0)):
            total = total * 0.5 + self.layer(x[i])
        if bool(total.sum() > 0):
            total = total * 2
        rounds = 0
        while bool(total.abs().sum() < 50.0) and rounds < 30:
            total = total * 1.5
            rounds += 1
        return x + total


@scripting
def test_scripted_submodule():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), torch.jit.script(Scripted())).eval()
    check(Program(model, SIZES, "batch"), "torchscript")


@scripting
def test_scripted_model():
    torch.manual_seed(0)
    check(Program(torch.jit.script(Scripted().eval()), SIZES, "batch"), "torchscript")


def signed_sum(x: Tensor) -> Tensor:
    total = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            total = total + x[i]
        else:
            total = total - x[i]
    return total


@scripting
def test_scripted_function():
    scripted = torch.jit.script(signed_sum)
    model = type("Model", (nn.Module,), {"forward": lambda self, x: scripted(x) * 2})().eval()
    check(Program(model, SIZES, "batch"), "torchscript")


def doubled_rows(n: int, x):
    out = []
    for i in range(n):
        out.append(x[i] * 2)
    return torch.stack(out)


def signed(x, k: int):
    if x.sum() > 0:
        return x * k
    return x - k


class CallsScripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.signed = torch.jit.script(doubled_rows), torch.jit.script(signed)

    def forward(self, x):
        return self.rows(x.shape[0], x), self.signed(x, x.shape[0])


def of_parameters():
    """A module that is scripted, but for its forward."""

    class OfParameters(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            return x * self.weight

        @torch.jit.script_method
        def scale(self, x):
            return x * self.weight

    return OfParameters()


class UsesParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = of_parameters()

    def forward(self, x):
        return x + self.part.weight


@scripting
def test_scripted_functions_are_rewritten(exporter):
    """What a size decides in them is decided in the file, as in the function that was scripted."""
    check(Program(CallsScripted().eval(), SIZES, "batch"), exporter)


@scripting
def test_a_scripted_module_without_a_scripted_forward():
    check(Program(UsesParameters().eval(), SIZES, "batch"), "torchscript")
