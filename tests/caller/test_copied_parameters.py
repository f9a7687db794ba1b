"""Without proof a small model is not run before its trace: twins have copies of the parameters, which are put back."""

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.observe import COPIED, Observation, Reference
from torch_onnx_compat.prepare import prepare

X = torch.arange(6.0).reshape(2, 3)


class Writes(nn.Module):
    """Writes to its weight in three ways; the last one tells nobody."""

    def __init__(self, way):
        super().__init__()
        self.weight, self.way = nn.Parameter(torch.tensor([1.0, 2.0, 3.0])), way

    def forward(self, x):
        result = x * self.weight
        if self.way == "in place":
            self.weight.mul_(2)
        elif self.way == "by data":
            self.weight.data += 1
        else:
            self.weight.detach().numpy()[:] = 7
        return result


@pytest.mark.filterwarnings("ignore:Converting a tensor to a NumPy array")
@pytest.mark.parametrize("way", ["in place", "by data", "by numpy"])
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_what_forward_writes_is_neither_in_the_model_nor_in_the_file(way, exporter):
    if exporter == "dynamo" and way == "by numpy":
        pytest.skip("torch.export takes no numpy of a parameter")
    model = Writes(way).eval()
    wanted = X * torch.tensor([1.0, 2.0, 3.0])
    result = export_compat(model, X, exporter=exporter, verify=False)
    assert model.weight.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(result(X)[0], wanted)


def runs_of(model, monkeypatch, **options):
    """How often the original was run in eager torch."""
    runs = []
    run = Observation._run
    monkeypatch.setattr(Observation, "_run", lambda self, *args, **how: runs.append(args) or run(self, *args, **how))
    export_compat(model, X, exporter="torchscript", **options)
    return len(runs)


def test_without_proof_the_model_is_only_traced(monkeypatch):
    assert runs_of(nn.Linear(3, 2).eval(), monkeypatch, verify=False) == 0


@pytest.mark.parametrize("kind", ["large", "shared"])
def test_where_copies_cost_more_or_lose_something_the_model_is_run(monkeypatch, kind):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).eval()
    if kind == "shared":
        model[1].weight.data = model[0].weight.data
    else:
        monkeypatch.setattr("torch_onnx_compat.observe.COPIED", 40)
    assert runs_of(model, monkeypatch, verify=False) == 1


def test_a_twin_has_copies_of_what_is_small_enough():
    prepared = prepare(nn.Linear(3, 2), (X,))
    assert not prepared.copy_parameters(31)
    assert prepared.twin().weight.data_ptr() == prepared.model.weight.data_ptr()
    assert prepared.copy_parameters(COPIED)
    twin = prepared.twin()
    assert twin.weight.data_ptr() != prepared.model.weight.data_ptr()
    assert torch.equal(twin.weight, prepared.model.weight)


def test_a_second_run_is_made_only_where_its_time_matters(monkeypatch):
    observation = Observation(prepare(nn.Linear(3, 2), (X,)))
    times = [5.0, 0.5]
    monkeypatch.setattr(observation, "_run", lambda *_, **__: Reference((), (), (), times.pop(0)))
    assert observation.takes_at_most(6.0)
    assert times == [0.5]
    assert observation.takes_at_most(1.0)
    assert times == []
    assert not observation.takes_at_most(0.1)
