"""Files at special values: right ones pass, wrong ones fail or get a note."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import Verify, export_compat
from torch_onnx_compat.check import special
from torch_onnx_compat.check.random_numbers import RandomNumbers
from torch_onnx_compat.check.special import check_special, special_inputs
from torch_onnx_compat.check.verify import run_session
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare

X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def check(model, file_model=None, x=X, how=None, seconds=100.0):
    """Findings about the file of one model as the file of another."""
    result = export_compat(file_model or model, (x,), exporter="torchscript", verify=False)
    session, observation = result.session(), Observation(prepare(model, (x,)))
    inputs = observation.prepared.inputs
    names = [output.name for output in session.get_outputs()]
    with export_conditions():
        how = how or Verify()
        return check_special(
            lambda i, most: run_session(session, i, seconds=most),
            names,
            observation,
            inputs,
            how,
            seconds,
            RandomNumbers(names, how, observation),
        )


class Detector(nn.Module):
    """Scores, best first, and their places: a black image ties them all, but for rounding."""

    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(1, 3), nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(self.norm(x)).flatten(1).sigmoid().topk(9)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(180, 4), nn.Softmax(1)),
        nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.MaxPool2d(2)),
        Detector(),
        lambda x: (F.normalize(x), x.argmax(-1), x.sum(0) / 3, x.abs().sqrt()),
        lambda x: x.flatten(1).topk(5),
        lambda x: (x.log(), 1 / x, x / x.norm()),
    ],
    ids=["classifier", "norm", "detector", "functions", "topk", "not finite"],
)
def test_right_files_pass(model):
    findings = check(model.eval() if isinstance(model, nn.Module) else model)
    assert findings.failed is None
    assert all(row.ok for row in findings.rows)


@pytest.mark.parametrize(
    ("model", "wrong", "label"),
    [
        (lambda x: x * (x == 0).any(), lambda x: x * 0, "a few zeros"),
        (lambda x: x.abs() + (x == 0), lambda x: x.abs(), "zeros"),
        (lambda x: x + (x.amax() == x.amin()) * x.abs().amax(), lambda x: x + 0.0, "equal values"),
        (lambda x: x.sort(-1).values - x, lambda x: x.sort(-1).values - x + 0 * x.mean() + 1e-3, "zeros"),
    ],
    ids=["a few zeros", "zeros", "equal values", "offset"],
)
def test_a_file_that_is_wrong_at_ordinary_special_values_is_found(model, wrong, label):
    findings = check(model, wrong)
    assert findings.failed is not None
    assert [row.case for row in findings.rows if not row.ok] == [label]


@pytest.mark.parametrize(("off", "is_note"), [(4e-4, True), (1e-3, False)])
def test_roundings_of_equal_values_are_alike(off, is_note):
    """A sum of them may be off by as many roundings as it has terms; elsewhere that much is an error."""
    ramp = torch.linspace(-1, 1, 8)
    findings = check(lambda x: x * 0 + ramp, lambda x: x * 0 + ramp + off * (x.amax() == x.amin()) * (x.amax() != 0))
    assert (findings.failed is None) == is_note
    assert any(note.startswith("at equal values the file differs") for note in findings.notes) == is_note


@pytest.mark.parametrize(("off", "is_note"), [(3e-9, True), (1e-7, False)])
def test_what_is_faint_beside_a_rounding_of_the_inputs_is_a_note(off, is_note):
    """Of zeros a normalisation makes what rounding left there: here three thousandths, or a tenth."""
    ramp = torch.linspace(-1, 1, 8)
    model = lambda x: F.layer_norm(x, (8,), eps=1e-12) + 1  # noqa: E731
    findings = check(model, lambda x: model(x + ramp * off * (x.amax() == 0) * (x.amin() == 0)))
    assert (findings.failed is None) == is_note
    assert is_note == any("rounding decides" in note for note in findings.notes)


def divides_by_place(x):
    """Eager torch takes some of the equal values, and divides by zero where that is the first one."""
    return x * (24 // x.abs().sum(0).topk(1).indices)


@pytest.mark.parametrize(("model", "is_note"), [(divides_by_place, True), (lambda x: x * 2, False)])
def test_a_file_that_fails_may_sort_equal_values_otherwise(model, is_note):
    x = X.clone()
    x[:, 0] = 0.25  # elsewhere the first place is not the largest
    findings = check(model, divides_by_place, x=x)
    assert (findings.failed is None) == is_note
    assert is_note == any("at zeros the order of equal values decides" in note for note in findings.notes)


def test_differences_at_extreme_values_are_notes():
    findings = check(lambda x: torch.nan_to_num(x, 0.25), lambda x: x + 0.0)
    assert findings.failed is None
    assert all(row.ok for row in findings.rows)
    (note,) = (note for note in findings.notes if "NaN" in note.partition("the file")[0])
    assert note.startswith("at NaN inputs the file differs from eager torch: output 'output': NaN or infinities")


def test_what_the_model_refuses_is_left_out():
    def positive(x):
        if bool((x == 0).any()) or not bool(x.isfinite().all()):
            raise ValueError("wanted positive values")
        return x.log()

    findings = check(positive, lambda x: x.log(), x=X.abs() + 0.1)
    assert findings.failed is None
    assert {row.case for row in findings.rows} <= {"equal values", "sorted values"}


def test_a_loop_that_does_not_end_is_left_out(monkeypatch):
    def halve(x):
        while bool(x.abs().max() > 1) and not bool(x.isfinite().all()):
            x = x / 2
        return x * 1.5

    monkeypatch.setattr(special, "SLOWEST", 2.0)
    assert check(halve, lambda x: x * 1.5).failed is None


def test_slow_models_are_left_out_and_it_is_said(monkeypatch):
    monkeypatch.setattr(special, "FLOOR_S", 0.0)
    findings = check(lambda x: x * 2, seconds=0.0)
    assert not findings.rows
    assert findings.notes[0].startswith("not tried at zeros, a few zeros, ")


def test_only_real_numbers_are_special():
    inputs = prepare(lambda x, n: x * n, (X, torch.arange(8))).inputs
    changed = list(special_inputs(inputs))
    assert len(changed) == 9
    assert all(torch.equal(c.inputs.tensors[1], torch.arange(8)) for c in changed)
    assert all(c.inputs.tensors[0].shape == X.shape for c in changed)
    assert not list(special_inputs(prepare(lambda n: n + 1, (torch.arange(8),)).inputs))
    assert not check(lambda x: x * 2, lambda x: x * 3, how=Verify(random=False)).rows


def test_booleans_are_tried_all_false_and_all_true():
    mask = torch.arange(8) % 3 == 0
    changed = list(special_inputs(prepare(lambda x, m: x[..., m], (X, mask)).inputs))
    masks = {c.label: c.inputs.tensors[1] for c in changed if torch.equal(c.inputs.tensors[0], X)}
    assert {label: sorted(set(m.tolist())) for label, m in masks.items()} == {
        "booleans all False": [False],
        "booleans all True": [True],
    }
    assert [c.is_ordinary for c in changed] == [True] * 6 + [False] * 5
    assert len(list(special_inputs(prepare(lambda m: m.int(), (mask,)).inputs))) == 2


@pytest.mark.parametrize(("wrong_at", "mask"), [("booleans all False", torch.any), ("booleans all True", torch.all)])
def test_a_file_that_is_wrong_at_masks_of_one_value_fails(wrong_at, mask):
    def model(x):
        return torch.where(x, 1.0, 2.0)

    def wrong(x):
        return model(x) + (mask(x) == (wrong_at == "booleans all True"))

    findings = check(model, wrong, torch.arange(8) % 3 == 0)
    assert findings.failed is not None
    assert {row.case for row in findings.rows if not row.ok} == {wrong_at}


def test_extreme_values_are_not_tried_on_operators_of_other_libraries_and_it_is_said():
    def sampled(x):
        return torchvision.ops.roi_align(x, [torch.tensor([[0.0, 0.0, 4.0, 4.0]])] * 2, 3)

    torchvision = pytest.importorskip("torchvision")
    findings = check(sampled)
    assert {row.case for row in findings.rows} == {"zeros", "a few zeros", "equal values", "sorted values"}
    (note,) = [note for note in findings.notes if note.startswith("not tried at ")]
    assert "NaN inputs" in note
    assert "torchvision.roi_align" in note


def test_a_run_that_is_ended_before_its_first_operation(monkeypatch):
    """Making a run ready clones tensors; on a busy machine the time was over there, outside of the run."""
    monkeypatch.setattr(special._Limits, "__init__", lambda self, seconds, **other: plain(self, -1.0, **other))
    assert check(nn.ReLU()).failed is None


plain = special._Limits.__init__
