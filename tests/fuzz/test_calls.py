"""Random calls of operators: none makes a wrong file on ordinary values, none ends in an exception of another kind."""

import math
from functools import partial

import pytest
import torch

from fuzz.call_judge import CAUGHT, CRASH, EAGER, RIGHT, SPECIAL, WRONG, compare_values, judge
from fuzz.call_table import make_call, make_pair, names
from fuzz.calls import VARYING, WITNESS, Call, Input, Model, beside
from torch_onnx_compat import export_compat

COUNT = {"torchscript": 100, "dynamo": 40}
STEP = {"torchscript": 25, "dynamo": 10}
"""A dynamo export takes a second; further seeds are for scripts/fuzz_calls.py."""

X = Input((3, VARYING), torch.float32)


@pytest.mark.parametrize(
    ("exporter", "first"), [(e, first) for e in COUNT for first in range(0, COUNT[e], STEP[e])], ids=str
)
def test_random_calls(exporter, first):
    rows = [judge(seed, make_call(seed), exporter) for seed in range(first, first + STEP[exporter])]
    wrong = [row for row in rows if row.verdict in (WRONG, CRASH)]
    assert not wrong, "\n".join(f"{row.verdict} {row.seed} {row.call}: {row.detail}" for row in wrong)
    assert sum(row.verdict in (RIGHT, SPECIAL) for row in rows) > 0.7 * len(rows)


@pytest.mark.parametrize(("exporter", "first"), [("torchscript", 0), ("torchscript", 15), ("dynamo", 0)], ids=str)
def test_two_calls_in_one_file(exporter, first):
    rows = [judge(seed, make_pair(seed), exporter) for seed in range(first, first + 15)]
    # What is caught was wrong in the file: of these seeds, since one call has changed the other.
    wrong = [row for row in rows if row.verdict in (WRONG, CRASH, CAUGHT)]
    assert not wrong, "\n".join(f"{row.verdict} {row.seed} {row.call}: {row.detail}" for row in wrong)
    assert sum(row.verdict in (RIGHT, SPECIAL) for row in rows) > 0.5 * len(rows)


def test_the_witness_shows_a_call_that_changes_a_constant(monkeypatch):
    without = partial(export_compat, exclude=["repeat_interleave_to_nonzero"])
    monkeypatch.setattr("fuzz.call_judge.export_compat", without)
    call = Call("repeat_interleave", torch.repeat_interleave, (X, 2, -1), {})
    assert judge(0, beside(call, WITNESS), "torchscript").verdict == CAUGHT
    monkeypatch.undo()
    assert judge(0, beside(call, WITNESS), "torchscript").verdict in (RIGHT, SPECIAL)


# The generator


def test_a_call_follows_from_its_seed():
    assert [str(make_call(seed)) for seed in range(50)] == [str(make_call(seed)) for seed in range(50)]


def test_every_function_is_drawn():
    drawn = {make_call(seed).name.rpartition(".")[2] for seed in range(6000)}
    assert len(names()) > 300
    assert drawn == {name.rpartition(".")[2] for name in names()}


def test_eager_torch_takes_nearly_every_call():
    refused = 0
    for seed in range(400):
        call, generator = make_call(seed), torch.Generator().manual_seed(seed)
        try:
            Model(call)(*[x.draw(generator) for x in call.inputs])
        except (RuntimeError, NotImplementedError):
            refused += 1
    assert refused < 10


def test_axes_that_vary_get_other_sizes():
    generator = torch.Generator()
    assert X.draw(generator, 9).shape == (3, 9)
    indices = Input((2, 50), torch.int64, "index", VARYING).draw(generator, 3)
    assert indices.min() == 0
    assert indices.max() == 2


# The judge


@pytest.mark.parametrize(
    ("function", "broken", "verdict", "text"),
    [
        (torch.exp, torch.exp2, WRONG, "differ"),
        (torch.exp, lambda x: torch.where(x.isnan(), 0.0, torch.exp(x)), SPECIAL, "nan"),
        (torch.exp, lambda x: torch.exp(x).double(), WRONG, "wanted torch.float32"),
        (torch.exp, lambda x: torch.exp(x[:, :5]) if x.shape[1] > 6 else torch.exp(x), WRONG, "at size 9 for 6"),
    ],
)
def test_the_judge_finds(monkeypatch, function, broken, verdict, text):
    class Result:
        def __call__(self, *tensors):
            return broken(*tensors)

    monkeypatch.setattr("fuzz.call_judge.export_compat", lambda *_, **__: Result())
    row = judge(0, Call("exp", function, (X,), {}), "torchscript")
    assert row.verdict == verdict
    assert text in row.detail


def test_the_judge_tells_refusals_of_eager_torch():
    assert judge(0, Call("dot", torch.dot, (X, X), {}), "torchscript").verdict == EAGER


def test_the_judge_finds_other_exceptions(monkeypatch):
    def fail(*_, **__):
        raise TypeError("len() of unsized object")

    monkeypatch.setattr("fuzz.call_judge.export_compat", fail)
    assert judge(0, Call("exp", torch.exp, (X,), {}), "torchscript").verdict == CRASH


@pytest.mark.parametrize(
    ("found", "wanted", "text"),
    [
        ([1.0, 2.0], [1.0005, 2.0], ""),
        ([1.0, 2.0], [1.01, 2.0], "1 of 2"),
        ([0.0, 2.0], [1e-5, 2.0], ""),
        ([math.nan, 2.0], [math.nan, 2.0], ""),
        ([1.0, math.nan], [math.nan, 2.0], "2 of 2"),
        ([math.inf, 3e38], [-math.inf, math.inf], "2 of 2"),
        ([1, 2**60], [1, 2**60 + 1], "1 of 2"),
        ([True, False], [True, True], "1 of 2"),
        (1.0, [1.0], "wanted torch.float32 (1,)"),
    ],
)
def test_comparison(found, wanted, text):
    told = compare_values(torch.tensor(found), torch.tensor(wanted))
    assert told.startswith(text) if text and text[0].isdigit() else text in told
    assert bool(told) == bool(text)
