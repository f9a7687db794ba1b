"""Before an error, cheaper ways to a file are tried, under the same proof; the result says what was given up."""

import time

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Exactness, export, export_compat, own_entries, rewrite
from torch_onnx_compat.candidates import Candidates
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.targets import load_target

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated")

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def compare(model, result, *inputs):
    wanted = model(*inputs)
    names = [value.name for value in result.session().get_inputs()]
    found = result.session().run(None, {n: t.numpy() for n, t in zip(names, inputs, strict=True)})
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        other = other.detach().numpy() if isinstance(other, torch.Tensor) else np.asarray(other)
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def given_up(result):
    return [note for note in result.notes if "left as the example" in note or "was not traced" in note]


# Decisions on sizes, left alone


class Remembers(nn.Module):
    """Changes a dictionary of its own, which a rewritten branch may not; nothing reads it."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def forward(self, x):
        if x.shape[0] > 4:
            self.seen["long"] = True
        return x * 2


class RemembersAndClamps(Remembers):
    """The same, and limits values that no test has."""

    def forward(self, x):
        if x.shape[0] > 4:
            self.seen["long"] = True
            x = x.clamp(max=1e6)
        return x * 2


class OtherConstant(Remembers):
    """The same, and reads another constant."""

    def forward(self, x):
        table = torch.tensor([1.0, 2.0, 3.0, 4.0])
        if x.shape[0] > 4:
            self.seen["long"] = True
            table = torch.tensor([1.0, 2.0, 3.0, 4.0 + 1e-6])
        return x * table


def test_a_decision_that_changes_nothing_is_left_alone():
    result = export_compat(Remembers(), X, dynamic="batch", exporter="torchscript")
    assert given_up(result)
    compare(Remembers(), result, torch.randn(9, 4))
    compare(Remembers(), result, torch.randn(2, 4))


@pytest.mark.parametrize("kind", [RemembersAndClamps, OtherConstant])
def test_a_decision_whose_other_side_computes_otherwise_is_not_left_alone(kind):
    """No value of the proof shows the difference: the graphs do."""
    with pytest.raises(CompatError, match=r"self\.seen\['long'\] is changed"):
        export_compat(kind(), X, dynamic="batch", exporter="torchscript")


def test_decisions_are_not_left_alone_without_a_proof():
    with pytest.raises(CompatError, match=r"self\.seen\['long'\] is changed"):
        export_compat(Remembers(), X, dynamic="batch", exporter="torchscript", verify=False)


class RemembersValues(Remembers):
    def forward(self, x):
        if x.max() > 100:
            self.seen["large"] = True
        return x * 2


def test_decisions_on_values_are_never_left_alone(exporter):
    with pytest.raises(CompatError):
        export_compat(RemembersValues(), X, dynamic="batch", exporter=exporter)


# Scripted models, not traced


class InTraining(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)


def test_a_scripted_model_is_written_from_its_own_graph():
    torch.manual_seed(0)
    model = torch.jit.script(InTraining().train())
    result = export_compat(
        model, X, exporter="torchscript", training=torch.onnx.TrainingMode.TRAINING, input_names=["x"]
    )
    assert given_up(result)
    compare(model, result, X)


# Entries that fail


def broken(input):
    """Raises what no entry means to raise."""
    raise ZeroDivisionError("broken")


def wrong(input):
    """Computes another function."""
    return torch.cosh(input)


def make_entry(body):
    declare = rewrite(
        torch.abs, registry=None, exactness=Exactness.BITWISE, needed_on=("torchscript", "dynamo"), name=body.__name__
    )
    return declare(body)


@pytest.fixture
def catalogue_with(monkeypatch):
    """Adds an entry for abs to the catalogue."""

    def add(body):
        whole = catalogue().with_entries([make_entry(body)])
        monkeypatch.setattr(export, "catalogue", lambda: whole)
        monkeypatch.setattr(own_entries, "DEFAULT", whole)

    return add


def test_an_entry_that_fails_is_left_out(catalogue_with, exporter):
    catalogue_with(broken)
    result = export_compat(lambda x: torch.abs(x), X, dynamic="batch", exporter=exporter)
    assert [note for note in result.notes if "broken failed, and was not applied" in note]
    compare(torch.abs, result, torch.randn(5, 4))


def test_an_entry_of_the_callers_is_not_left_out(exporter):
    with pytest.raises(CompatError, match="ZeroDivisionError"):
        export_compat(lambda x: torch.abs(x), X, exporter=exporter, rewrites=[make_entry(broken)])


def test_an_entry_that_was_asked_for_is_not_left_out(catalogue_with, exporter):
    catalogue_with(broken)
    with pytest.raises(CompatError, match="ZeroDivisionError"):
        export_compat(lambda x: torch.abs(x), X, exporter=exporter, include=["broken"])


# The opset


class Largest(nn.Module):
    def forward(self, x):
        return x.amax(1)


@pytest.fixture
def picky():
    """An engine that does not run ReduceMax at opset 17, its own choice."""
    from dataclasses import replace

    from torch_onnx_compat.targets.target import Row

    target = load_target("onnxruntime")
    return replace(target, name="picky", opset=17, opsets=(13, 20), rows=(Row("ReduceMax", "refused", opset=(17, 17)),))


def test_another_opset_where_the_target_chose_it(picky, exporter):
    result = export_compat(Largest(), X, dynamic="batch", exporter=exporter, target=picky)
    assert result.opset == 18
    assert "opset 18 was taken, as no file of opset 17 is right." in result.notes
    compare(Largest(), result, torch.randn(7, 4))


def test_the_opset_that_was_asked_for_stays(picky, exporter):
    with pytest.raises(CompatError, match="ReduceMax"):
        export_compat(Largest(), X, exporter=exporter, target=picky, opset_version=17)


# torch's own file


def test_the_last_candidate_is_torchs_own_file(catalogue_with, exporter):
    catalogue_with(wrong)
    result = export_compat(lambda x: torch.abs(x), X, dynamic="batch", exporter=exporter)
    assert [note for note in result.notes if "torch's own file" in note]
    assert not result.applied
    compare(torch.abs, result, torch.randn(5, 4))


def test_torchs_own_file_has_to_be_right_at_extreme_values(catalogue_with):
    """Stock's log1p is log(1 + x): it is 0 at the smallest numbers."""
    catalogue_with(wrong)
    with pytest.raises(CompatError, match="does not compute"):
        export_compat(lambda x: (torch.sign(x), torch.abs(x)), X, exporter="torchscript")


# The cost of a refusal


def test_refusals_are_as_quick_as_before_where_nothing_can_help(exporter, monkeypatch):
    """A frozen decision on values: no last candidate is tried."""
    tried = []
    monkeypatch.setattr(Candidates, "_made", lambda self, *args, **how: tried.append(args))
    start = time.perf_counter()
    with pytest.raises(CompatError):
        export_compat(RemembersValues(), X, exporter=exporter)
    assert not tried
    assert time.perf_counter() - start < 60
