import numpy as np
import torch

from torch_onnx_compat.check.order import row_orders

SCORES = torch.tensor([0.9, 0.50001, 0.5, 0.49999, 0.2])
BOXES = torch.arange(20.0).reshape(5, 4)
LABELS = torch.tensor([1, 2, 3, 4, 5])
PATHS = [(0, "boxes"), (0, "labels"), (0, "scores")]


def orders(permutation, wanted=(BOXES, LABELS, SCORES), paths=PATHS):
    found = [w.numpy()[permutation] for w in wanted]
    return found, row_orders(wanted, paths, found)


def test_near_ties_are_put_back():
    found, order = orders([0, 3, 1, 2, 4])
    assert set(order) == {0, 1, 2}
    for index, wanted in enumerate((BOXES, LABELS, SCORES)):
        np.testing.assert_array_equal(found[index][order[index]], wanted.numpy())


def test_rows_in_place_are_left_alone():
    assert orders([0, 1, 2, 3, 4])[1] == {}


def test_rows_of_other_scores_stay_where_they_are():
    found, order = orders([4, 1, 2, 3, 0])
    assert order == {}
    assert found[1][0] == 5


def test_a_label_stays_with_its_box():
    found = [BOXES.numpy()[[0, 2, 1, 3, 4]], LABELS.numpy(), SCORES.numpy()]  # boxes alone have changed places
    order = row_orders((BOXES, LABELS, SCORES), PATHS, found)
    moved = [a[order[i]] if i in order else a for i, a in enumerate(found)]
    assert any((a != w.numpy()).any() for a, w in zip(moved, (BOXES, LABELS, SCORES), strict=True))


def test_outputs_of_other_containers_are_others():
    paths = [(0, "boxes"), (1, "labels"), (0, "scores")]
    _, order = orders([0, 3, 1, 2, 4], paths=paths)
    assert set(order) == {0, 2}


def test_without_scores_order_counts():
    assert orders([1, 0, 2, 3, 4], wanted=(BOXES, LABELS), paths=PATHS[:2])[1] == {}
