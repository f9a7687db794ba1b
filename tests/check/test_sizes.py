"""Which questions about sizes are tried at other sizes, and which need not be."""

import math

import pytest
import sympy
import torch
from torch import nn
from torch.utils._sympy.functions import FloorDiv

from torch_onnx_compat import CompatError, Verify, export_compat
from torch_onnx_compat.check.frontier import Rank
from torch_onnx_compat.check.sizes import SizeTrials
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.questions.question import Question


class Queries(nn.Module):
    """A detector's best places: where the batch is 1, torch takes it for 1, and later for a divisor of 30."""

    def __init__(self):
        super().__init__()
        self.norm, self.score = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        features, batch = self.norm(x), x.shape[0]
        place = self.score(features).max(-1).values.topk(30, dim=1).indices.view(-1)
        item = torch.arange(batch).unsqueeze(-1).repeat(1, 30).view(-1)
        chosen = features[item, place].view(batch, 30, -1)
        return chosen.flatten(1).topk(min(30, chosen.shape[1] * 4)).values


def test_what_is_asked_at_one_size_only_is_not_tried_at_others(exporter):
    result = export_compat(Queries().eval(), (torch.randn(1, 200, 8),), dynamic={"x": {0: "batch"}}, exporter=exporter)
    assert result.axes[0].proven
    assert max(result.axes[0].tried) < 9  # 10 items have 3 rows each where 30 rows are one item's


class OneOrMore(nn.Module):
    def forward(self, x):
        if x.shape[0] == 1:
            return x * 2 if x.shape[1] > 40 else x * 3
        return x * 5 if x.shape[1] > 20 else x * 7


def test_what_is_asked_beside_an_equation_is_tried(exporter):
    dynamic = {"x": {0: "batch", 1: "length"}}
    result = export_compat(OneOrMore().eval(), (torch.randn(1, 9),), dynamic=dynamic, exporter=exporter)
    session = result.session()
    for batch in (1, 2, 3):
        for length in (1, 20, 21, 40, 41, 90):
            x = torch.randn(batch, length)
            (found,) = session.run(None, {"x": x.numpy()})
            torch.testing.assert_close(torch.from_numpy(found), OneOrMore()(x))


class AskedAgain(nn.Module):
    """One statement asks of the batch where it is 1, and where it is large; only the latter has two answers."""

    def scale(self, x):
        return x * 2 if x.shape[0] < 200 else x * 3

    def forward(self, x):
        if x.shape[0] == 1:
            return self.scale(x)
        if x.shape[0] > 20:
            return self.scale(x) + 1
        return x


def test_what_is_asked_at_one_size_is_tried_where_it_is_asked_again(exporter):
    result = export_compat(AskedAgain().eval(), (torch.randn(5, 3),), dynamic={"x": {0: "batch"}}, exporter=exporter)
    session = result.session()
    for batch in (1, 2, 20, 21, 199, 200, 201, 450):
        x = torch.randn(batch, 3)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), AskedAgain()(x))
    assert max(result.axes[0].tried) >= 200


def asked_again(kind, sizes):
    """Where the model is asked again after these sizes have other answers to a question of a kind."""
    prepared = prepare(nn.Identity(), (torch.rand(4, 3),), dynamic={"input": {0: "n"}})
    trials = SizeTrials(prepared.inputs, lambda seconds: True)
    for n in sizes:
        trials.accept({"n": n}, Question(kind, "n // 2", 2, "net.py:3"))
    found = []
    while (one := trials.next_frontier(last=Rank.PYTHON)) is not None:
        found.append(one["n"])
    return found


def test_a_model_is_asked_again_on_the_other_side():
    assert asked_again("condition", (7, 9)) == [7, 9]
    assert asked_again("rounding", (7, 9)) == []


def test_of_many_numbers_the_smallest_and_the_largest_are_asked_again():
    """In the last rounds of a loop it may ask what it does not in the first ones."""
    assert sorted(asked_again("number", (6, 2, 11, 3, 9))) == [2, 11]
    assert asked_again("number", (6,)) == [6]


def test_what_two_questions_have_in_common_is_asked_again():
    """Sizes that one question needs no more stay on the list for another; those that nobody asks at are not known."""
    prepared = prepare(nn.Identity(), (torch.rand(4, 3),), dynamic={"input": {0: "n"}})
    trials = SizeTrials(prepared.inputs, lambda seconds: True)
    number = Question("number", "n // 2", 2, "net.py:3")
    trials.accept({"n": 6}, Question("condition", "n > 5", False, "net.py:2"))
    for n in (2, 6, 7, 11):
        trials.accept({"n": n}, number)
    assert sorted(one["n"] for one in trials.frontier) == [2, 6, 11]
    assert trials._asked_at == {(2,), (6,), (11,)}


def test_a_size_that_was_tried_is_asked_again_beside_one_of_a_single_cell():
    """Of a single row, half of it is nothing: what the model asks there is not what it asks of five rows."""
    prepared = prepare(nn.Identity(), (torch.rand(3, 3),), dynamic={"input": {0: "n"}})
    n = sympy.Symbol("n", positive=True, integer=True)
    halves = Question("condition", sympy.Eq(FloorDiv(n, 2), 1), True, "net.py:2", "aten.clone.default")
    single = Question("condition", sympy.Eq(n, 1), False, "net.py:1", "aten.add.Tensor")
    trials = SizeTrials(prepared.inputs, lambda seconds: True)
    for size in (1, 5):
        trials.accept({"n": size})
    for trial in trials.for_questions([single, halves], {"n": 3}):
        trials.refuse(trial.sizes)
    assert {one["n"] for one in trials.frontier} == {1, 5}


class Windows(nn.Module):
    """How many windows there are, in other words where each run without numbers has found whole ones."""

    def forward(self, x):
        batch, height, _ = x.shape
        below = -height % 4
        if below != 0:
            x = nn.functional.pad(x, (0, 0, 0, below))
        rows = x.reshape(-1, 16)
        whole = int(rows.shape[0] / (x.shape[1] * x.shape[2] / 4 / 4))
        for _ in range(whole % 4):
            rows = rows + 1
        return rows.view(batch, -1)


def tried(monkeypatch, model, x, dynamic):
    """The sizes that are tried for questions of the model's Python, with the question."""
    trials = []
    chosen = SizeTrials.for_questions

    def record(self, questions, asked_at):
        for trial in chosen(self, questions, asked_at):
            trials.append(trial)
            yield trial

    monkeypatch.setattr(SizeTrials, "for_questions", record)
    export_compat(model.eval(), (x,), dynamic=dynamic, exporter="torchscript")
    return [trial for trial in trials if not trial.question.chooses_kernel]


def test_a_number_that_was_right_is_not_tried_in_other_words(monkeypatch):
    trials = tried(monkeypatch, Windows(), torch.randn(2, 9, 12), {"x": {0: "n", 1: "h"}})
    numbers = [trial for trial in trials if trial.question.kind == "number"]
    assert len({trial.question.expression for trial in numbers}) > 1
    named = [trial.sizes["n"] for trial in numbers if trial.sizes["n"] > 8]
    assert sorted(named) == sorted(set(named)) != []


class Rounded(nn.Module):
    def forward(self, x):
        return x.mean(1, keepdim=True).repeat(1, int(x.shape[1] * 0.7), 1)


def test_a_rounding_is_not_tried_at_many_times_the_example(monkeypatch):
    small, large = (tried(monkeypatch, Rounded(), torch.randn(1, 40, c), {"x": {1: "n"}}) for c in (1, 512))
    assert max(trial.sizes["n"] for trial in small) > 160
    assert 90 <= max(trial.sizes["n"] for trial in large) <= 160


def chosen_by_count(x):
    return x * 2 if x.shape[0] <= 40 else x.flip(0)


def repeated_by_count(x):
    return torch.cat([x] * math.ceil(x.shape[0] / 40), 1)


@pytest.mark.parametrize("model", [chosen_by_count, repeated_by_count])
def test_what_is_too_large_to_try_is_not_verified(model, exporter):
    """Forty-one of these pictures are more than a case may hold; the file may hold the answer for two."""
    pictures = torch.rand(2, 3, 700, 700)
    with pytest.raises(CompatError, match=r"would freeze|too large to try|captured for sizes up to 40") as caught:
        export_compat(model, (pictures,), dynamic={"x": {0: "batch"}}, exporter=exporter)
    if "too large to try" in str(caught.value):
        assert "('batch', 1, 40)" in str(caught.value)


def test_a_limit_is_the_way_out():
    pictures = torch.rand(2, 3, 700, 700)
    result = export_compat(chosen_by_count, (pictures,), dynamic={"x": {0: ("batch", 1, 40)}})
    assert result.axes[0].proven
    few = export_compat(chosen_by_count, (torch.rand(2, 3, 8, 8),), dynamic={"x": {0: "batch"}})
    assert max(few.axes[0].tried) > 40


def counted(x):
    return x * (len(x) // 64 + 1)


def test_named_numbers_are_tried_at_sizes_of_whole_batches(exporter):
    """Sixty-four of these pictures are a few million elements."""
    pictures = torch.rand(2, 3, 128, 128)
    result = export_compat(counted, (pictures,), dynamic={"x": {0: "batch"}}, exporter=exporter)
    assert {63, 64} <= set(result.axes[0].tried)
    many = torch.rand(64, 3, 128, 128)
    torch.testing.assert_close(result(many)[0], counted(many))


def test_named_numbers_that_are_too_large_are_told(exporter):
    """After len() nobody knows what is made of the number; 64 of these pictures are more than a case may hold."""
    result = export_compat(counted, (torch.rand(2, 3, 700, 700),), dynamic={"x": {0: "batch"}}, exporter=exporter)
    assert any("not tried at batch=64, a number that its code names" in note for note in result.notes)


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        (
            {"x": {0: "batch", 1: "n"}},
            r"unknown dynamic axis 'nob'; did you mean 'n'\?.* Dynamic axes here: batch, n\.",
        ),
        (None, r"unknown dynamic axis 'nob'.* Dynamic axes here: none\."),
    ],
)
def test_sizes_of_an_axis_that_does_not_vary(dynamic, message):
    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    with pytest.raises(CompatError, match=message):
        export_compat(Twice(), torch.rand(2, 3), dynamic=dynamic, verify=Verify(sizes={"nob": [1, 77]}))


def test_a_limit_far_above_a_small_example(exporter):
    """An input of few numbers is not too large to try, however small the example is."""

    def model(x):
        return x[:, :5000] * 2 if x.shape[1] > 5000 else x

    result = export_compat(model, (torch.randn(4, 8),), dynamic={"x": {0: "b", 1: "n"}}, exporter=exporter)
    for rows, columns in ((1, 1), (4, 5000), (2, 5001), (3, 7000)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(result(x)[0], model(x))


class Picky(nn.Module):
    """Beyond 36 columns it takes few sizes, none of them near."""

    def __init__(self, takes):
        super().__init__()
        self.takes = takes

    def forward(self, x):
        if x.shape[1] > 36:
            if not self.takes(x.shape[1]):
                raise ValueError("a size that it does not take")
            x = x * 2
        return x


@pytest.mark.parametrize(
    ("takes", "size"),
    [(lambda n: n % 32 == 0, 320), (lambda n: n == 409, 409), (lambda n: n > 700, 800), (lambda n: n // 5 == 99, 497)],
)
def test_few_sizes_beyond_a_condition_are_found(takes, size, exporter):
    """Dynamo's file lacked the branch, and all sizes near its other side were refused."""
    result = export_compat(Picky(takes), (torch.randn(3, 12),), dynamic={"x": {1: "columns"}}, exporter=exporter)
    assert max(result.axes[0].tried) > 36
    for columns in (1, 12, 36, size):
        x = torch.randn(3, columns)
        torch.testing.assert_close(torch.from_numpy(result.session().run(None, {"x": x.numpy()})[0]), Picky(takes)(x))
