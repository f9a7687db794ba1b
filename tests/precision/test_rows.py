"""Rows that a model selects, in float16: found wherever they stand, few may come or go, none may be another's."""

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.precision.rows import RowGroup, largest_own_share, match_rows, row_groups

SCORES = np.array([0.9, 0.8, 0.79, 0.3], np.float32)
BOXES = np.array([[0, 0, 9, 9], [5, 5, 20, 20], [1, 2, 8, 9], [3, 3, 4, 4]], np.float32)
LABELS = np.array([1, 2, 1, 3])
ALL = [BOXES, LABELS, SCORES]
PATHS = [("boxes",), ("labels",), ("scores",)]
GROUP = RowGroup((0, 1, 2), False)


def taken(order):
    return [array[order] for array in ALL]


def test_a_group_is_what_sorted_scores_stand_beside():
    assert row_groups(ALL, PATHS) == [GROUP]
    assert row_groups([BOXES, LABELS, SCORES[::-1].copy()], PATHS) == []
    batched = np.concatenate([np.sort(np.random.rand(2, 30, 1), axis=1)[:, ::-1], np.random.rand(2, 30, 4)], axis=2)
    assert row_groups([batched.astype(np.float32)], [("0",)]) == [RowGroup((0,), True)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]])
def test_the_order_does_not_count(order):
    assert match_rows(GROUP, taken(order), ALL, 0.02).share == 0.0


@pytest.mark.parametrize(("order", "share"), [([0, 1, 2], 1 / 7), ([0, 1, 2, 3, 3], 1 / 9), ([], 1.0)])
def test_rows_that_come_or_go(order, share):
    found = [array[np.array(order, int)] for array in ALL]
    assert match_rows(GROUP, found, ALL, 0.02).share == pytest.approx(share)


@pytest.mark.parametrize("member", [0, 1, 2])
def test_a_value_of_another_row_is_no_match(member):
    """Labels, boxes or scores that change places with each other are wrong, whatever their order."""
    found = [a[[1, 0, 2, 3]] if i == member else a for i, a in enumerate(ALL)]
    assert match_rows(GROUP, found, ALL, 0.02).share == 0.5


def test_no_rows_at_all():
    nothing = [array[:0] for array in ALL]
    assert match_rows(GROUP, nothing, nothing, 0.02).share == 0.0
    assert match_rows(GROUP, nothing, ALL, 0.02).share == 1.0


def test_no_run_is_made_that_is_not_needed():
    def runs():
        yield taken([0, 1, 2])
        raise AssertionError("one was enough")

    assert largest_own_share(GROUP, runs(), ALL, 0.02, 0.1) == pytest.approx(1 / 7)


class Selector(nn.Module):
    """Boxes above a threshold, the best first, with many scores near it and near each other."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.boxes, self.score = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, x):
        features = self.features(x)
        scores = self.score(features).sigmoid().squeeze(1)
        boxes = self.boxes(features) * 50
        kept = torch.nonzero(scores > self.threshold).squeeze(1)
        scores, order = scores[kept].sort(descending=True)
        return {"boxes": boxes[kept][order], "scores": scores}


def selector():
    torch.manual_seed(0)
    model = Selector().eval()
    model.threshold = 0.5
    x = torch.randn(300, 16)
    with torch.no_grad():
        model.threshold = float(model.score(model.features(x)).sigmoid().median())
    return model, x


def test_a_detector_is_in_float16():
    model, x = selector()
    result = export_compat(model, x, precision="float16", exporter="dynamo")
    told = result.precision
    assert told.share == 1.0
    assert all(row.ok for row in told.errors)
    assert "come or go" in str(told)
    assert any("come or go" in row.why for row in told.errors)


def test_rows_that_eager_torch_does_not_move_are_refused(monkeypatch):
    """Another threshold in the file than in the model."""
    from torch_onnx_compat.precision import narrow

    model, x = selector()
    convert = narrow.convert

    def spoiled(network, half, plan):
        made = convert(network, half, plan)
        for node in made.graph:
            if node.op_type == "Sigmoid":
                node.op_type = "HardSigmoid"
        return made

    monkeypatch.setattr(narrow, "convert", spoiled)
    told = export_compat(model, x, precision="float16", exporter="dynamo").precision
    assert not all(row.ok for row in told.errors)
