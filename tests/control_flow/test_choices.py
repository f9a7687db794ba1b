"""A list or dict that a decision chooses has two names: what changes it afterwards is refused."""

import functools

import onnxruntime as ort
import pytest
import torch
from symbolic_runs import Module

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

RARE = torch.tensor([417.0, 32.0, 1290.0])


def is_rare(x):
    """What hardly any input is, so that no case of the proof shows what follows."""
    return (x[-3:].round() == RARE).all()


def changes_the_chosen_list(x):
    a, b = [x], [x * 2]
    bank = a if x[0] > 0 else b
    if is_rare(x):
        bank[0] = x * 5
    return a[0] - b[0]


def changes_a_copy_or_not(x):
    state = {"h": x}
    other = state if x[0] > 0 else dict(state)
    other["h"] = x * 3
    return state["h"] if is_rare(x) else x


def changes_the_other_name(x):
    a = [x]
    chosen = a if x[0] > 0 else [x * 2]
    a.append(x * 3)
    return chosen[-1] if is_rare(x) else x


def reverses_a_slice_or_not(x):
    rows = [x, x * 2]
    others = rows[:] if x[0] > 0 else rows
    if is_rare(x):
        others.reverse()
    return rows[0]


def unpacks_lists(x):
    pair = ([x], [x * 2])
    first, _ = pair if x[0] > 0 else pair[::-1]
    if is_rare(x):
        first[0] = x * 7
    return pair[0][0]


def asks_which_list(x):
    rows = [x]
    others = rows
    if x[0] > 0:
        others = [*rows]
    return x * 2 if is_rare(x) and others is rows else x


def asks_which_tensor(x):
    y = x + 1
    chosen = y if x[0] > 0 else x
    return x * 2 if is_rare(x) and chosen is y else x


def changes_a_class(x):
    class Meter:
        count = 0

        @classmethod
        def add(cls):
            cls.count += 1

    if x[0] > 0:
        Meter.add()
    return x * Meter.count if is_rare(x) else x


def changes_the_class_of_an_object(x):
    thing = One()
    if x[0] > 0:
        thing.__class__ = Nine
    return x * thing.factor if is_rare(x) else x


def changes_a_partial(x):
    clamp = functools.partial(torch.clamp, min=0)
    if x[0] > 0:
        clamp.keywords["min"] = -5
    return clamp(x) if is_rare(x) else x


def sends_to_a_generator(x):
    def count():
        total = 0
        while True:
            total += (yield total) or 0

    counter = count()
    next(counter)
    if x[0] > 0:
        counter.send(5)
    total = counter.send(1)
    return x * total if is_rare(x) else x


def replaces_memory(x):
    y = torch.zeros(2)
    if x[0] > 0:
        y.set_(torch.ones(2))
    return x * y.sum() if is_rare(x) else x


class One:
    factor = 1


class Nine:
    factor = 9


def chooses_new_lists(x):
    rows = [x] if x[0] > 0 else [x * 2]
    rows.append(x * 3)
    rows[0] = rows[0] + 1
    return rows[0] + rows[1]


def only_reads(x):
    a, b = {"h": x}, {"h": x * 2}
    chosen = a if x[0] > 0 else b
    return chosen["h"] + a["h"]


def changes_in_a_branch(x):
    rows = [x, x * 2]
    if x[0] > 0:
        rows[0] = x * 5
    rows[1] = rows[0] + 1
    return rows[0] + rows[1]


def binds_anew(x):
    rows = [x]
    if x[0] > 0:
        rows = [x * 2]
    return rows[0] if rows is not None else x


REFUSED = (
    *(changes_the_chosen_list, changes_a_copy_or_not, changes_the_other_name, reverses_a_slice_or_not, unpacks_lists),
    *(asks_which_list, asks_which_tensor, changes_a_class, changes_the_class_of_an_object, changes_a_partial),
    *(sends_to_a_generator, replaces_memory),
)
RIGHT = (chooses_new_lists, only_reads, changes_in_a_branch, binds_anew)


def export(function, exporter, path):
    export_compat(
        Module(function).eval(),
        (torch.randn(6),),
        str(path),
        input_names=["x"],
        dynamic_axes={"x": {0: "length"}},
        exporter=exporter,
    )


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_a_second_name_is_refused(function, exporter, tmp_path):
    with pytest.raises(CompatError, match=r"test_choices\.py|other memory"):
        export(function, exporter, tmp_path / "model.onnx")


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_other_choices_are_right(function, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export(function, exporter, path)
    session = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for x in (torch.randn(7), -torch.randn(4).abs(), torch.randn(3).abs()):
        found = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
        torch.testing.assert_close(found, function(x.clone()))
