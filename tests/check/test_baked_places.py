"""What `allow_baked` accepts is left out of the proof; everything else stays in it."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.check.baked_places import BakedPlaces
from torch_onnx_compat.errors import VerificationError

X = torch.rand(2, 3)


def place_of(function, line):
    return f"check/test_baked_places.py:{function.__code__.co_firstlineno + line}"


def two(x):
    if x.sum() > 1e9:
        x = x + 1
    if x.mean() > 2:
        x = x * 3
    return x


def number(x):
    k = int(x.max().ceil())
    if x.mean() > 2:
        x = x * 3
    return x + k


def one_line(x):
    y = x * 2 if x.max().item() > 2 else x
    return y if x.min().item() > -1 else y + 1


def cases_of(result):
    return list(dict.fromkeys(row.case for row in result.table))


def test_other_decisions_stay_proven():
    result = export_compat(two, (X,), exporter="torchscript", allow_baked=[place_of(two, 1)])
    labels = cases_of(result)
    assert any(label.startswith(f"the other side of {place_of(two, 3)}") for label in labels)
    assert not any(place_of(two, 1) in label for label in labels)
    assert any(note.startswith(f"{place_of(two, 1)}: frozen at its value") for note in result.notes)
    assert {"zeros", "equal values", "sorted values"} <= set(labels)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for value in (X, X + 5, -X, X * 1e6):
        (found,) = session.run(None, {session.get_inputs()[0].name: value.numpy()})
        np.testing.assert_allclose(found, two(value).numpy(), rtol=1e-5)


def test_a_place_where_nothing_is_changes_nothing():
    plain = export_compat(two, (X,), exporter="torchscript")
    result = export_compat(two, (X,), exporter="torchscript", allow_baked=["nowhere.py:7"])
    assert cases_of(result) == cases_of(plain)
    assert any("allow_baked: no decision was met at 'nowhere.py:7'" in note for note in result.notes)


def test_a_misspelt_place_is_told_with_those_that_were_met():
    wrong = place_of(two, 1).replace("baked", "bakd")
    result = export_compat(two, (X,), exporter="torchscript", allow_baked=[wrong])
    assert any("did you mean" in note and place_of(two, 1) in note for note in result.notes)


def test_numbers_may_be_other_ones_where_the_file_is_excused():
    """At zeros the number is 0 and the file has 1, which the caller accepts; the decision stays proven."""
    result = export_compat(number, (X,), exporter="torchscript", allow_baked=[place_of(number, 1)])
    zeros = [note for note in result.notes if note.startswith("at zeros the file differs")]
    assert zeros
    assert place_of(number, 1) in zeros[0]
    assert "allow_baked" in zeros[0]
    assert "zeros" not in cases_of(result)
    assert "sorted values" in cases_of(result)


def test_a_wrong_other_side_is_no_less_wrong_beside_what_is_accepted(monkeypatch):
    """The file is made wrong where the other decision takes its other side."""
    import torch_onnx_compat.check.verify as verify

    run = verify.run_session

    def wrong(session, inputs, *args, **kwargs):
        found = run(session, inputs, *args, **kwargs)
        return [value + 1 for value in found] if inputs.tensors[0].mean() > 2 else found

    monkeypatch.setattr(verify, "run_session", wrong)
    with pytest.raises(VerificationError, match="the other side of"):
        export_compat(two, (X,), exporter="torchscript", allow_baked=[place_of(two, 1)])


def accepted_at(function, line, *before):
    from torch_onnx_compat.inputs.inputs import bind
    from torch_onnx_compat.observe import Observation
    from torch_onnx_compat.prepare import prepare

    observation = Observation(prepare(function, (X,)))
    inputs = [bind(observation.prepared.model, (value,), None, None) for value in before]
    return BakedPlaces([place_of(function, line)], observation, lambda: inputs), lambda value: bind(
        observation.prepared.model, (value,), None, None
    )


@pytest.mark.parametrize(
    ("function", "line", "same", "other"),
    [
        (two, 1, X * 2, X + 1e10),
        (two, 3, X - 1, X + 5),
        (one_line, 1, X - 5, X + 5),
        (one_line, 2, X + 5, X - 5),
    ],
)
def test_which_way_python_goes_at_a_place(function, line, same, other):
    places, of = accepted_at(function, line, X)
    assert places.are_kept(of(same))
    assert not places.excuse("here", of(same), "off")
    assert not places.are_kept(of(other))
    assert places.excuse("here", of(other), "off")


def test_a_number_is_another_one_and_the_way_the_same():
    places, of = accepted_at(number, 1, X)
    assert places.are_kept(of(X * 0))
    assert "comes to something else" in places.excuse("here", of(X * 0), "off")
    assert not places.excuse("here", of(X / 2), "off")


class Mask(nn.Module):
    def forward(self, x, mask):
        if x.sum() > 1e9:
            x = x + 1
        return x * mask


def test_other_numbers_than_the_only_one_are_tried():
    line = Mask.forward.__code__.co_firstlineno + 1
    args = (X, torch.ones(2, 3, dtype=torch.int64))
    result = export_compat(Mask(), args, exporter="torchscript", allow_baked=[f"test_baked_places.py:{line}"])
    assert any("other numbers" in label for label in cases_of(result))
