"""Values at which decisions come out otherwise than in every other case: found, judged, or else named."""

import time
from dataclasses import replace

import onnxruntime as ort
import pytest
import torch
from check.decided import ALL, X, mean
from torch import nn

from torch_onnx_compat import Verify, export_compat, rewrite
from torch_onnx_compat.check import cases, other_sides
from torch_onnx_compat.check.elsewhere import Elsewhere
from torch_onnx_compat.check.other_sides import OtherSides
from torch_onnx_compat.check.variations import between, led_back, variations
from torch_onnx_compat.control_flow.run.aliases import Aliases
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.prepare import prepare


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def cases_of(result):
    return list(dict.fromkeys(row.case for row in result.table))


@pytest.mark.one_exporter
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(("function", "args"), ALL, ids=[name_of(function) for function, _ in ALL])
def test_every_side_is_found(function, args, exporter, monkeypatch):
    monkeypatch.setattr(cases, "FLOOR_S", 60.0)  # the number of runs ends the search, and not how fast a machine is
    model = function.eval() if isinstance(function, nn.Module) else function
    try:
        result = export_compat(model, args, exporter=exporter)
    except CompatError as error:
        assert exporter == "dynamo", error
        pytest.skip(f"refused: {error}"[:200])
    assert not [note for note in result.notes if "samples=" in note]
    if name_of(function) not in TAKEN_BY_OTHERS:
        assert [case for case in cases_of(result) if " of check/decided.py:" in case]


TAKEN_BY_OTHERS = ("place",)
"""The case of other values takes their other side."""


@rewrite(torch.frac, name="frac_but_wrong", needed_on=("torchscript", "dynamo"), registry=None)
def frac_but_wrong(input):
    return torch.fmod(input, 1) + 0.5


def in_four(x):
    if x.max() > 50:
        return x * 2 if len(x.unsafe_chunk(4, -1)) == 4 else x * 3
    return x


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_size_that_only_the_other_side_asks_of_is_tried_there(exporter, monkeypatch):
    options = {"exporter": exporter, "dynamic": {"x": {1: "width"}}}
    x = torch.rand(3, 20)
    with pytest.raises(CompatError, match=r"case 'the other side of check/test_other_sides.py:\d+, width=\d+'"):
        export_compat(in_four, (x,), **options)
    monkeypatch.setattr(Elsewhere, "_asked", lambda self, found: iter(()))
    monkeypatch.setattr(Elsewhere, "_unasked", lambda self, found: iter(()))
    assert export_compat(in_four, (x,), **options).table


def test_the_other_side_is_tried_at_other_sizes_too():
    def halved(x):
        return x[:, ::2] * 2 if x.max() > 50 else x[:, ::2]

    result = export_compat(halved, (torch.rand(3, 20),), exporter="torchscript", dynamic={"x": {1: "width"}})
    sides = [case for case in cases_of(result) if case.startswith("the other side of")]
    assert len(sides) > 1
    assert all("width=" in case for case in sides[1:])


def loud(x):
    if x.mean() > 100:
        return x.frac()
    return x * 2


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_branch_that_the_example_does_not_take_is_judged(exporter, monkeypatch):
    wrong = {"rewrites": [frac_but_wrong], "exclude": ["frac_to_fmod"], "exporter": exporter}
    with pytest.raises(CompatError, match=r"case 'the other side of check/test_other_sides.py:\d+'"):
        export_compat(loud, (X,), **wrong)
    assert export_compat(loud, (X,), exporter=exporter).table
    monkeypatch.setattr(OtherSides, "search", lambda self, bases: iter(()))
    unproven = export_compat(loud, (X,), **wrong)
    assert all(row.ok for row in unproven.table)
    assert [note for note in unproven.notes if "every case has answered this decision alike (no)" in note]


def at_infinity(x):
    return x * 0 if x.max().item() == float("inf") else x + 1


def beyond_any_float(x):
    return x * 2 if int(x.clamp(-9, 9).sum()) > 10**400 else x + 1


def within_infinities(x):
    return x - 1 if -torch.inf < x.log().sum().item() < torch.inf else x


def beside_infinities(x):
    return x * 2 if (x.log() > -3).any() else x + 1


def test_a_side_that_no_input_takes_is_named():
    def never(x):
        if x.abs().sum() < -1:
            x = x * 3
        return x + 1

    start = time.process_time()
    result = export_compat(never, (X,), exporter="torchscript")
    spent = time.process_time() - start
    (note,) = [note for note in result.notes if "samples=" in note]
    assert note.startswith("check/test_other_sides.py:")
    assert "alike (no)" in note
    assert cases_of(result)[:2] == ["example", "other values 1"]
    assert spent < 30


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("function", [at_infinity, beyond_any_float, within_infinities, beside_infinities])
def test_numbers_without_end_are_compared(function, exporter):
    result = export_compat(function, (X,), exporter=exporter)
    for x in (X, X * 0, -X, X * 100, X * torch.inf):
        torch.testing.assert_close(result(x)[0], function(x), equal_nan=True)


def test_a_decision_that_no_case_comes_to_is_named():
    def never(x):
        if x.abs().sum() < -1 and x.max() > 3:
            x = x * 3
        return x + 1

    notes = export_compat(never, (X,), exporter="torchscript").notes
    assert any("no case comes to this decision" in note for note in notes)


def test_the_search_is_the_same_each_time_and_leaves_the_random_state_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    tables = [export_compat(mean, (X,), exporter="torchscript").table for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert [row.case for row in tables[0]] == [row.case for row in tables[1]]


def test_nothing_is_made_up_where_only_the_callers_values_make_sense():
    result = export_compat(mean, (X,), exporter="torchscript", verify=Verify(random=False))
    assert cases_of(result) == ["example"]
    assert any("samples=" in note for note in result.notes)
    given = export_compat(mean, (X,), exporter="torchscript", verify=Verify(random=False), samples=[(X + 200,)])
    assert not [note for note in given.notes if "samples=" in note]


def test_what_is_accepted_as_it_is_is_not_tried_on_its_other_side():
    first = mean.__code__.co_firstlineno + 1
    result = export_compat(mean, (X,), exporter="torchscript", allow_baked=[f"check/decided.py:{first}"])
    assert not [case for case in cases_of(result) if "other side" in case]


def test_a_model_without_decisions_on_values_is_not_searched(monkeypatch):
    monkeypatch.setattr(OtherSides, "__init__", None)
    export_compat(lambda x: x * 2 if x.shape[0] > 4 else x, (X,), dynamic="batch", exporter="torchscript")
    export_compat(nn.Linear(4, 2).eval(), (X,), exporter="torchscript")


def test_inputs_that_the_model_refuses_are_not_taken():
    table = nn.Embedding(9, 4)

    def look_up(n):
        y = table(n)
        if n.sum() > 20:
            y = y * 2
        return y

    result = export_compat(look_up, (torch.tensor([[1, 2, 3, 1]]),), exporter="torchscript")
    assert any(case.startswith("the other side of") for case in cases_of(result))
    assert not [note for note in result.notes if "samples=" in note]


def test_a_loop_that_does_not_end_elsewhere_ends_the_run(monkeypatch):
    def halve(x):
        while x.max() > 0.5:
            x = x - 0.5 * (x.max() < 3)
        return x

    monkeypatch.setattr(other_sides, "SLOWEST", 1.0)
    result = export_compat(halve, (X,), exporter="torchscript")
    assert all(row.ok for row in result.table)


def test_what_a_rounding_may_decide_is_no_case():
    class Edge(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 1e4 else x

    result = export_compat(Edge(), (X,), exporter="torchscript")
    assert any("other side" in case for case in cases_of(result))


def test_a_model_that_counts_its_calls_decides_nothing_by_them():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x * 2 if x.mean() + self.calls > 20 else x

    result = export_compat(Counts().eval(), (X,), exporter="torchscript")
    assert all(row.ok for row in result.table)
    assert any("other side" in case for case in cases_of(result))


def test_variations_keep_shapes_types_order_and_the_inputs():
    args = (X, torch.arange(6), torch.tensor([True, False]), torch.tensor([1.0, 2.0, float("-inf")]), torch.zeros(0, 3))
    inputs = prepare(lambda a, b, c, d, e: a, args).inputs
    before = [tensor.clone() for tensor in inputs.tensors]
    some = list(variations(inputs, [3.0, -1e30, 0.25], seed=1))
    again = list(variations(inputs, [3.0, -1e30, 0.25], seed=1))
    assert len(some) > 100
    for one, other in zip(some, again, strict=True):
        for x, y, z in zip(one.tensors, other.tensors, inputs.tensors, strict=True):
            assert (x.shape, x.dtype) == (z.shape, z.dtype)
            assert torch.equal(x, y)
    assert all(one.tensors[3][-1] == float("-inf") for one in some[:-4])  # the last ones are drawn
    assert all(map(torch.equal, before, inputs.tensors))


def test_between_rounds_whole_numbers():
    one, other = (prepare(lambda a, b, c: a, args).inputs for args in (A, B))
    middle = between(one, other, 0.5)
    assert [tensor.tolist() for tensor in middle.tensors] == [[1.0], [2], [True]]


A = (torch.tensor([0.0]), torch.tensor([0]), torch.tensor([False]))
B = (torch.tensor([2.0]), torch.tensor([4]), torch.tensor([True]))


class AliasOnOneSide(nn.Module):
    """Both results have the 1 where the decision is yes, which is only seen beside values that are not large."""

    def forward(self, x, w):
        a = x + 0
        y = a if w.sum() * w.std() > 1e5 and x.min() > -1 else a.clone()
        y += 1
        return a, y


def test_a_small_error_beside_values_that_need_not_be_large(exporter, monkeypatch):
    """All inputs a thousand times as large take the side; that one of them suffices is found, too."""
    monkeypatch.setattr(Aliases, "mark_of", lambda self, value: "")  # which refuses the model before there is a file
    inputs = torch.randn(4, 6), torch.randn(4, 6)
    with pytest.raises(CompatError, match="the other side of"):
        export_compat(AliasOnOneSide().eval(), inputs, exporter=exporter)


def test_inputs_of_other_sizes_are_led_back_one_by_one(exporter):
    """The side is found at another size of one input, while the other one has the example's."""

    def model(x, w):
        return x * 2 if w.mean() > 100 else x + w.sum()

    options = {"dynamic": {"x": {0: "n"}}, "exporter": exporter}
    result = export_compat(model, (torch.randn(5, 3), torch.randn(4)), **options)
    assert sum("the other side of" in case for case in cases_of(result)) > 1


def test_one_input_goes_back_a_part_of_the_way():
    inputs = prepare(lambda x, n: x + n, (torch.ones(2), torch.tensor([4, 8]))).inputs
    far = replace(inputs, tensors=(torch.full((2,), 9.0), torch.zeros(5, dtype=torch.int64)))
    back = led_back(far, inputs, 0, 0.25)
    assert torch.equal(back.tensors[0], torch.full((2,), 3.0))
    assert back.tensors[1] is far.tensors[1]


def test_inputs_of_two_sizes_are_halved_at_the_sizes_of_the_first(tmp_path):
    def spells(ids):
        is_word = ids[0].item() == 417 and ids[1].item() == 32 and ids[2].item() == 1290
        return ids + 100 if is_word else ids

    path = str(tmp_path / "model.onnx")
    ids = torch.tensor([7, 3, 1500, 22, 80, 9])
    export_compat(spells, (ids,), path, input_names=["ids"], dynamic_axes={"ids": {0: "length"}})
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    for given in ([417, 32, 1290, 4], [417, 32, 1291], [417, 32, 1290]):
        ids = torch.tensor(given)
        assert session.run(None, {"ids": ids.numpy()})[0].tolist() == spells(ids).tolist()
