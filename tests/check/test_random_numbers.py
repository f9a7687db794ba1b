"""Models that random numbers decide are refused, however few values they have; those that they do not are told."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import CompatError, Verify, export_compat
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.random_modes import DrawTrace, RareDraws
from torch_onnx_compat.check.random_numbers import RandomNumbers
from torch_onnx_compat.observe import Observation, Reference
from torch_onnx_compat.prepare import prepare

X = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.1, -0.3]])
OTHERS = "computes something else with others"


def dropped(x):
    return F.dropout(x, 0.5, training=True)


def sampled(x):
    """One of the three is far likelier than the others, but where all inputs are alike."""
    return torch.multinomial((50 * x).softmax(-1), 1)


def hardened(x):
    """The noise that changes which is the best is rare, and the same for all changes nothing."""
    return F.gumbel_softmax(4 * x, hard=True).argmax(-1)


def flipped(x):
    """One time in a thousand."""
    return x.sum() + (torch.rand([]) > 0.999) * 1.0


def branched(x):
    return -x if bool(torch.rand([]) < 0.001) else x


def written(x):
    y = x.clone()
    y[0, 1:].add_(torch.randint(0, 1000, (2,)) >= 998)
    return y


def times_python(x):
    return x * random.random()


def times_numpy(x):
    return x * np.random.rand()


@pytest.mark.parametrize("seed", [2, 9, 91, 114, 163, 200])
def test_few_values_that_agree_by_chance(seed):
    """At these seeds a file with a Dropout of its own had the example's values, or others that looked like rounding."""
    torch.manual_seed(seed)
    with pytest.raises(CompatError, match=OTHERS):
        export_compat(dropped, (X,), exporter="torchscript", exclude=["dropout_in_training"])


@pytest.mark.parametrize("model", [dropped, sampled, flipped, written, times_python, times_numpy])
def test_what_draws_is_refused(model, exporter):
    state = torch.get_rng_state()
    with pytest.raises(CompatError, match=r"the model draws random numbers.*pass them to the model as an input"):
        export_compat(model, (X,), exporter=exporter)
    assert torch.equal(state, torch.get_rng_state())


def test_noise_that_is_rarely_large():
    with pytest.raises(CompatError, match=OTHERS):
        export_compat(hardened, (X,), exporter="dynamo")


def test_a_branch_that_is_rarely_taken():
    with pytest.raises(CompatError):
        export_compat(branched, (X,), exporter="torchscript")


def refused(x):
    """Draws until it likes a number, which the smallest never are, and takes no part of it."""
    while bool(torch.rand([]) < 0.5):
        pass
    return 2 * x


def test_a_loop_that_the_rarest_numbers_never_end():
    reference = Reference((2 * X,), ((),), (), 0.01, draws=("torch",))
    observation = Observation(prepare(refused, (X,)))
    numbers = RandomNumbers(["output"], Verify(), observation)
    numbers.check(Case("example", observation.prepared.inputs, reference))
    assert any("others made no difference" in note for note in numbers.notes)


@pytest.mark.parametrize(
    ("draw", "least", "most"),
    [
        (lambda: torch.rand(4), 0, 1),
        (lambda: torch.empty(4).uniform_(2, 4), 2, 4),
        (lambda: torch.bernoulli(torch.tensor([0.01, 0.99, 0.5, 0.5])), 0, 1),
        (lambda: torch.randint(3, 9, (4,)), 3, 8),
        (lambda: torch.empty(4).exponential_(2.0), 0, 15),
        (lambda: torch.poisson(torch.full((4,), 4.0)), 0, 17),
    ],
)
def test_the_rarest_numbers_take_turns(draw, least, most):
    for is_high, wanted in ((False, [least, most] * 2), (True, [most, least] * 2)):
        with RareDraws(is_high=is_high):
            found = draw()
        torch.testing.assert_close(found.double(), torch.tensor(wanted).double(), atol=1e-6, rtol=0)


def test_the_rarest_samples():
    for is_high, sample, order in ((False, 2, [0, 1, 2]), (True, 1, [2, 1, 0])):
        with RareDraws(is_high=is_high):
            assert torch.multinomial(torch.tensor([[0.0, 0.9, 0.1]]), 1).tolist() == [[sample]]
            assert torch.randperm(3).tolist() == order
            assert (torch.randn(99).abs() > 1).all()
            nn.LSTM(3, 3, num_layers=2, dropout=0.5).eval()(X)  # may draw, and does not


def test_the_statement_is_named():
    with pytest.raises(
        CompatError,
        match=r"draws random numbers at .*test_random_numbers.py:\d+ that have a part in what it computes, and",
    ):
        export_compat(dropped, (X,), exporter="torchscript")


class Skipping(nn.Module):
    """Skips layers by chance in training, and draws for it in each run."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            chance = torch.rand([])
            if not self.training or chance > 0.1:
                x = layer(x).relu()
        return x


def test_draws_that_reach_nothing_are_no_matter(exporter):
    result = export_compat(Skipping().eval(), (X,), exporter=exporter, dynamic="batch")
    assert not any("random numbers" in note for note in result.notes)


def test_draws_that_make_no_difference_are_told(exporter):
    result = export_compat(lambda x: x + 0 * torch.rand_like(x), (X,), exporter=exporter)
    (note,) = (note for note in result.notes if "random numbers" in note)
    assert "that have a part in what it computes; in " in note


class SkippingByNumpy(Skipping):
    def forward(self, x):
        for layer in self.layers:
            chance = np.random.rand()
            if not self.training or chance > 0.1:
                x = layer(x).relu()
        return x


def test_numbers_that_nobody_follows_are_told():
    result = export_compat(SkippingByNumpy().eval(), (X,), exporter="torchscript", dynamic="batch")
    (note,) = (note for note in result.notes if "random numbers" in note)
    assert note.startswith("the model draws random numbers of numpy, which nobody can follow; in ")


def greedy(x):
    """The best of each row, drawn among equal ones."""
    best = torch.where(x < x.amax(-1, keepdim=True), -torch.inf, x)
    return torch.multinomial(best.softmax(-1), 1)


def test_where_all_is_equal_random_numbers_may_decide():
    result = export_compat(greedy, (X,), exporter="torchscript")
    assert any(note.startswith("at zeros random numbers decide") for note in result.notes)


def test_what_is_lost_sight_of_counts():
    trace = DrawTrace()
    with trace:
        assert trace.reaches([torch.rand(2)[1:]])
        assert not trace.reaches([torch.zeros(2)])
        assert not trace.is_asked
        torch.rand(2, 2).to_sparse()
    assert trace.is_asked


def test_a_model_that_draws_nothing_is_run_no_more(monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.check.random_numbers.DrawTrace", None)
    assert not any("random" in note for note in export_compat(nn.Linear(3, 3).eval(), (X,)).notes)


def test_without_a_proof_it_is_exported():
    assert export_compat(dropped, (X,), exporter="torchscript", verify=False).nodes["Dropout"] == 1
