"""Decisions that hang on a rounding, in models whose own answer changes with it, and real errors beside them."""

import itertools

import numpy as np
import pytest
import torch
from onnx import helper, numpy_helper, save
from torch import nn

from torch_onnx_compat import Verify
from torch_onnx_compat.check.cases import Case, Cases
from torch_onnx_compat.check.compare import NOISE_LIMIT
from torch_onnx_compat.check.perturb import BreakTies
from torch_onnx_compat.check.rounding import Doubt, compare_outputs
from torch_onnx_compat.check.verify import verify
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare

ROWS, TIES = 60, 8


class NearTies(nn.Module):
    """Which of two sums is the greater, in 60 rows; in the first eight rounding alone tells."""

    def __init__(self):
        super().__init__()
        first = torch.rand(ROWS, 300, generator=torch.Generator().manual_seed(0))
        second = first + 1
        second[:TIES] = first[:TIES].flip(1)
        self.register_buffer("table", torch.stack((first, second)))

    def forward(self, x):
        return (self.table * x).sum(-1).argmax(0)


class Selects(nn.Module):
    """The rows above 0.3, one of which is at it but for rounding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x):
        scores = (x * self.weight).sum(-1)
        return x[scores > 0.3], scores[scores > 0.3]


class Truncates(nn.Module):
    def forward(self, x):
        return x.trunc()


def verdicts(model, x, change, how=None):
    prepared = prepare(model.eval() if isinstance(model, nn.Module) else model, (x,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    found = [change(o.clone()).numpy() for o in case.reference.outputs]
    return compare_outputs([str(i) for i in range(len(found))], found, case, how or Verify(), observation)


def flipped(rows):
    def change(output):
        output[rows] = 1 - output[rows]
        return output

    return change


X = torch.full((300,), 0.7)


def test_what_rounding_decides_passes():
    (row,) = verdicts(NearTies(), X, flipped([0, 3]))
    assert row.ok
    assert "2 values off" in row.detail


def test_more_than_rounding_decides_does_not():
    (row,) = verdicts(NearTies(), X, flipped(range(TIES + 1)))
    assert not row.ok


def test_exact_inputs_are_no_excuse():
    """Without weights nothing is rounded before the decision, and whole numbers are exactly that."""
    x = torch.arange(300.0)
    (row,) = verdicts(Truncates(), x, lambda o: torch.cat((o[:1] + 1, o[1:])))
    assert not row.ok


def test_most_of_an_output_is_never_excused():
    (row,) = verdicts(NearTies(), X, flipped(range(ROWS // 2)))
    assert not row.ok


def test_the_callers_tolerance_is_the_last_word():
    (row,) = verdicts(NearTies(), X, flipped([0, 3]), Verify(rtol=1e-3))
    assert not row.ok


ABOVE, AT = torch.tensor([[0.4, 0.4], [0.9, 0.1]]), torch.tensor([[0.2, 0.1]])


def test_a_row_that_is_at_the_threshold():
    x = torch.cat((ABOVE, AT, AT / 2))
    without = 2 if len(Selects()(x)[0]) == 3 else 3
    other = [torch.cat((ABOVE, AT))[:without], torch.tensor([0.8, 1.0, 0.3])[:without]]
    assert all(row.ok for row in verdicts(Selects(), x, lambda o: other[0] if o.ndim > 1 else other[1]))


def test_a_row_that_is_not():
    x = torch.cat((ABOVE, AT, AT / 2))
    rows = verdicts(Selects(), x, lambda o: o[:1])
    assert not any(row.ok for row in rows)


# Noise, value by value


class Counts(nn.Module):
    """A noisy column beside columns that a file gets wrong by a factor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return torch.cat([(x[:, :1] * 12345.678) ** 2, x * self.calls], 1)


def doubled_but_the_first(output):
    output[:, 1:] *= 2
    output[:, :1] *= 1 + 2e-7
    return output


def test_a_noisy_column_excuses_no_other():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    (row,) = verdicts(Counts(), x, doubled_but_the_first)
    assert not row.ok
    assert verdicts(Counts(), x, lambda o: torch.cat([o[:, :1] * (1 + 2e-7), o[:, 1:]], 1))[0].ok


class Scores(nn.Module):
    """Scores as a trained detector gives them where nothing is: onnxruntime's Sigmoid is off by 1 % there."""

    def forward(self, x):
        return torch.sigmoid(x - 12)


def test_small_scores_pass_and_wrong_ones_do_not():
    x = torch.rand(2, 80, 100, generator=torch.Generator().manual_seed(0))
    assert verdicts(Scores(), x, lambda o: o + 6e-8)[0].ok
    assert not verdicts(Scores(), x, lambda o: o * 1.3)[0].ok
    assert not verdicts(Scores(), x, lambda o: o + 1e-6)[0].ok


class Cancels(nn.Module):
    """Differences of large values in the first row; the others hold nothing but the input."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1e4], [0.0], [0.0]]), requires_grad=False)

    def forward(self, x):
        return (x * 1.1 + self.weight) - self.weight


def test_cancellation_is_excused_where_it_is():
    x = torch.rand(3, 50, generator=torch.Generator().manual_seed(0))
    noise = 5e-4 * torch.sign(torch.randn(3, 50, generator=torch.Generator().manual_seed(1)))
    (row,) = verdicts(Cancels(), x, lambda o: o + noise * torch.tensor([[1.0], [0], [0]]))
    assert row.ok
    assert "eager torch's own change there" in row.detail
    for wrong in range(1, 3):
        (row,) = verdicts(Cancels(), x, lambda o, wrong=wrong: o + 2 * noise * (torch.arange(3) == wrong)[:, None])
        assert not row.ok


class OtherInDouble(nn.Module):
    """Computes something else in float64."""

    def forward(self, x):
        return x * 1.5 if x.dtype == torch.float64 else x


class Bag(nn.Module):
    """torch's float64 kernel ignores the last offset."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 5, mode="sum", include_last_offset=True)
        nn.init.normal_(self.bag.weight, generator=torch.Generator().manual_seed(0))

    def forward(self, x):
        return self.bag(x, torch.tensor([0, 2, 5, 6]))


def test_another_meaning_in_float64_excuses_nothing():
    """A file that has exactly what float64 has was accepted."""
    x = torch.randn(40, generator=torch.Generator().manual_seed(0))
    assert not verdicts(OtherInDouble(), x, lambda o: o * 1.5)[0].ok
    ids = torch.arange(1, 8)
    (row,) = verdicts(Bag(), ids, lambda o: torch.cat([o[:2], o[2:] + Bag().bag.weight[7].detach()]))
    assert not row.ok


def test_a_file_of_the_bag_that_sums_to_the_end_is_refused(tmp_path):
    """A file with the fault itself, whatever the exporters make of the bag now."""
    model, x = Bag().eval(), torch.arange(1, 8)
    prepared = prepare(model, (x,))
    place = torch.tensor([[1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1]]).float()

    def file(matrix):
        weights = {"table": model.bag.weight.detach().numpy(), "place": matrix.numpy()}
        nodes = [
            helper.make_node("Gather", ["table", prepared.inputs.names[0]], ["rows"]),
            helper.make_node("MatMul", ["place", "rows"], ["output"]),
        ]
        graph = helper.make_graph(
            nodes,
            "bag",
            [helper.make_tensor_value_info(prepared.inputs.names[0], 7, [7])],
            [helper.make_tensor_value_info("output", 1, [3, 5])],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        )
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "bag.onnx")
        return tmp_path / "bag.onnx"

    right = place.clone()
    right[2, 6] = 0
    cases = Cases(Observation(prepared), Verify())
    with torch.no_grad():
        assert all(row.ok for row in verify(file(right), ["output"], cases, Verify()))
        with pytest.raises(VerificationError):
            verify(file(place), ["output"], cases, Verify())


class Classifier(nn.Module):
    """Ill-conditioned: some logits move beyond the tolerance after a rounding."""

    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Linear(64, 64), nn.Linear(64, 200)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))

    def forward(self, x):
        return self.head((self.inner(x) * 300).sin())


def test_one_wrong_value_among_noisy_ones_is_found():
    """It was once enough that eager torch moves as many values, whichever they are."""
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    model = Classifier()
    found = (model.head.double()((model.inner(x) * 300 * (1 + 1e-7)).double().sin())).float().detach()
    model.head.float()
    assert verdicts(model, x, lambda o: found.clone())[0].ok
    for index in (0, 77, 199):
        wrong = found.clone()
        wrong[:, index] += 0.1 * wrong.abs().mean()
        assert not verdicts(model, x, lambda o, wrong=wrong: wrong)[0].ok


# Ties


class Best(nn.Module):
    def forward(self, x):
        return x.flatten(1).topk(2).indices, x.flatten(1).argsort(descending=True)


TIED = torch.tensor([[[3.0, 1.0], [3.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])


def indices(*, lowest_first):
    with BreakTies(lowest_first=lowest_first):
        return [o.numpy() for o in Best()(TIED)]


def judge_indices(found):
    prepared = prepare(Best().eval(), (TIED,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    return compare_outputs(["best", "order"], found, case, Verify(), observation)


@pytest.mark.parametrize("lowest_first", [True, False])
def test_indices_of_equal_values_may_come_in_another_order(lowest_first):
    assert all(row.ok for row in judge_indices(indices(lowest_first=lowest_first)))


def test_indices_of_other_values_may_not():
    best, order = indices(lowest_first=True)
    for wrong in (best[:, ::-1] * 0 + 1, order[:, ::-1][:, :2]):
        assert not all(row.ok for row in judge_indices([np.ascontiguousarray(wrong), order]))


# What is no table of differences


def test_another_number_of_outputs_is_said():
    prepared = prepare(Selects().eval(), (AT,))
    observation = Observation(prepared)
    case = Case("example", prepared.inputs, observation.reference("example", prepared.inputs))
    (row,) = compare_outputs(["a", "b", "c"], [np.zeros(1)] * 3, case, Verify(), observation)
    assert not row.ok
    assert row.detail.startswith("3 outputs, wanted 2")


def test_a_vector_for_a_number_is_said():
    (row,) = verdicts(lambda x: x.sum(), X, lambda o: o.reshape(1))
    assert (row.ok, row.detail) == (False, "shape (1,), wanted ()")


def runs_of(wanted, places, values):
    """Outputs that are the original's but for some places, which have one of these values in each."""
    for value in itertools.cycle(values):
        other = wanted.copy()
        other[places] = value
        yield other


def explained(found, wanted, noisy, decided=6):
    doubt = Doubt(found, wanted, NOISE_LIMIT)
    runs = iter(noisy)
    for _ in range(6):
        doubt.explain_by_noise(next(runs))
    for _ in range(decided):
        doubt.explain_by_decision(next(runs))
    return doubt.is_explained


LABELS = (np.arange(300) * 7 % 80).astype(np.float32)


@pytest.mark.parametrize("label", [3, 77])
def test_a_label_at_the_cut_may_be_any(label):
    """Which row is the last one depends on a rounding; so does its label, which no two runs have alike."""
    found = LABELS.copy()
    found[-1] = label
    assert explained(found, LABELS, runs_of(LABELS, -1, (69, 60, 35, 52, 56, 63)))


def test_a_label_that_never_changes_may_not():
    for place in (-2, 0):
        found = LABELS.copy()
        found[place] += 40
        assert not explained(found, LABELS, runs_of(LABELS, -1, (69, 60, 35, 52, 56, 63)))


def test_one_of_two_labels_is_one_of_the_two():
    found = LABELS.copy()
    found[-1] = 60
    assert not explained(found, LABELS, runs_of(LABELS, -1, (25, 13)))
    found[-1] = 25
    assert explained(found, LABELS, runs_of(LABELS, -1, (25, 13)))


def test_no_label_is_out_of_range():
    found = LABELS.copy()
    found[-1] = 800
    assert not explained(found, LABELS, runs_of(LABELS, -1, (69, 60, 35, 52, 56, 63)))


def test_what_all_runs_have_otherwise_is_not_rounding():
    """Then the original that rounds otherwise is another one, and its difference excuses none of the file's."""
    found = LABELS.copy()
    found[-1] = 60
    assert not explained(found, LABELS, runs_of(LABELS, -1, (60,)))
    found[5] = 79
    assert not explained(found, LABELS, runs_of(LABELS, [5, -1], (60,)))


class Grouped(nn.Module):
    """Rows in the order of a key with many equal values, averaged by fours: the order of equals tells which four."""

    def forward(self, x):
        order = (x[:, 0] * 3).round().sort().indices
        return x[order].reshape(-1, 4, x.shape[1]).mean(1)


KEYED = torch.rand(64, 3, generator=torch.Generator().manual_seed(0))


def first_of_equals(x):
    order = (x[:, 0] * 3).round().sort(stable=True).indices
    return x[order].reshape(-1, 4, 3).mean(1)


def test_equal_values_may_come_in_another_order_if_results_are_floats():
    (row,) = verdicts(Grouped(), KEYED, lambda output: first_of_equals(KEYED))
    assert row.ok
    assert "equal values in another order" in row.detail
    assert row.case == "example"


def test_rounding_is_judged_in_that_order():
    class Waves(Grouped):
        def forward(self, x):
            return (super().forward(x) * 1e4).sin()

    exact = (first_of_equals(KEYED.double()) * 1e4).sin().float()
    (row,) = verdicts(Waves(), KEYED, lambda output: exact)
    assert row.ok
    assert "eager torch's own change" in row.detail


def test_no_order_of_equal_values_explains_one_wrong_row():
    def change(output):
        output = first_of_equals(KEYED)
        output[5] *= 1.005
        return output

    (row,) = verdicts(Grouped(), KEYED, change)
    assert not row.ok


def test_an_order_that_the_model_promises_is_kept():
    class Stable(Grouped):
        def forward(self, x):
            return first_of_equals(x)

    (row,) = verdicts(Stable(), KEYED, lambda output: output.roll(1, 0))
    assert not row.ok
