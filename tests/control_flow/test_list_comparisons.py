"""Lists of values are compared as Python compares them, those too whose length depends on the inputs."""

import onnxruntime as ort
import pytest
import torch
from symbolic_runs import Module

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

STOP = [417, 32, 1290, 5]


def ends(ids):
    return ids * 2 if ids[-4:].tolist() == [417, 32, 1290, 5] else ids


def begins_otherwise(ids):
    goes_on = ids[:4].tolist() != STOP
    if goes_on:
        return ids
    return ids * 2


def is_among(ids):
    return ids * 2 if ids[:2].tolist() in [[1, 2], [417, 32]] else ids


def is_tuple(ids):
    return ids * 2 if tuple(ids[:4].tolist()) == (417, 32, 1290, 5) else ids


def is_never(ids):
    return ids * 2 if tuple(ids[:4].tolist()) == STOP else ids


def is_selected(ids):
    large = ids[ids > 300].tolist()
    return ids * 2 if large == [417, 1290] else ids


def holds_tensors(ids):
    return ids * 2 if list(ids[:4]) == STOP else ids


def holds_one(ids):
    return ids * 2 if 417 in ids.tolist() else ids


def holds_none(ids):
    return ids * 2 if 417.5 in ids.tolist() or ids[:1].tolist() == [0.5] else ids


def is_empty(ids):
    return ids * 2 if ids[ids > 1000].tolist() == [] else ids


def loops(ids):
    start = ids[:2].tolist()
    for word in [[1, 2], [417, 32]]:
        if start == word:
            return ids * 2
    return ids


def same(a, b):
    return a == b


def asks_elsewhere(ids):
    return ids * 2 if same(ids[:2].tolist(), [417, 32]) else ids


def of_floats(ids):
    return ids * 2 if (ids[:2] / 10).tolist() == [0.1, 0.5] or (ids[:2] / 4).tolist() == [0.25, 0.5] else ids


def of_its_kind(ids):
    words = ids[ids > 300].tolist()
    return ids * 2 if isinstance(words, list) and type(words) is list and (ids > 1000).any() else ids


def of_its_truth(ids):
    words = ids.tolist()
    return ids * 2 if words and words[0] == 417 else ids


def matches(ids):
    match ids[:2].tolist():
        case [417, 32]:
            return ids * 2
    return ids


def looks_up(ids):
    return ids * {(417, 32): 2}.get(tuple(ids[:2].tolist()), 1)


def of_both(ids):
    return ids * 2 if ids[:2].tolist() == ids[2:4].tolist() else ids


RIGHT = (
    *(ends, begins_otherwise, is_among, is_tuple, is_never, is_selected, holds_tensors, holds_one, holds_none),
    *(is_empty, loops, asks_elsewhere, of_floats, of_its_kind, of_its_truth),
)
REFUSED = (matches, looks_up, of_both)
INPUTS = (
    *([417, 32, 1290, 5], [6, 6, 417, 32, 1290, 5], [417, 32, 1290, 5, 9], [417, 32], [1, 2, 3], [417, 1290]),
    *([417, 32, 1290], [7], [1, 5], [417, 3, 1290, 1], [5, 5, 5, 5], [417, 32, 417, 32], list(range(40))),
)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("function", [*RIGHT, *REFUSED], ids=lambda function: function.__name__)
def test_lists_are_compared(function, exporter, tmp_path):
    model, path = Module(function).eval(), tmp_path / "model.onnx"
    ids = torch.tensor([7, 3, 1500, 22, 80, 9])
    try:
        export_compat(
            model, (ids,), str(path), input_names=["ids"], dynamic_axes={"ids": {0: "length"}}, exporter=exporter
        )
    except CompatError:
        assert exporter == "dynamo" or function in REFUSED
        return
    assert function not in REFUSED
    session = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for given in INPUTS:
        ids = torch.tensor(given)
        assert session.run(None, {"ids": ids.numpy()})[0].tolist() == model(ids).tolist(), given


def is_long(ids):
    return ids * 2 if torch.zeros(ids.shape[0] // 64).tolist() else ids


def counts_later(ids):
    return ids + len(torch.arange(ids.shape[0] // 64).tolist())


def adds_later(ids):
    return ids + sum(2 * k + 1 for k in torch.arange(ids.shape[0] // 64).tolist())


def runs_later(ids):
    for row in torch.ones(ids.shape[0] // 64, 2):
        ids = ids + row.sum().long()
    return ids


def takes_apart_later(ids):
    for word in ids[: ids.shape[0] // 64].unbind():
        ids = ids + word
    return ids


def finds_later(ids):
    return ids * 2 if 70 in ids[64:].tolist() else ids


def counts_columns(ids):
    return ids + len(torch.zeros(3, ids.shape[0] // 64).tolist()[0])


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(
    "function",
    [is_long, counts_later, adds_later, runs_later, takes_apart_later, finds_later, counts_columns],
    ids=lambda function: function.__name__,
)
def test_lists_that_are_empty_at_the_example(function, exporter):
    try:
        result = export_compat(
            Module(function).eval(), (torch.arange(6),), dynamic={"x": {0: "length"}}, exporter=exporter
        )
    except CompatError:
        assert exporter == "dynamo"
        return
    for length in (1, 5, 63, 64, 65, 130, 200):
        ids = torch.arange(length)
        assert result(ids)[0].tolist() == function(ids).tolist(), length
