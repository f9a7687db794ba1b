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


def queries(batch=2, rows=12):
    """Boxes (batch, rows, 4) and logits of three classes (1, batch, rows, 3), best query first."""
    generator = torch.Generator().manual_seed(0)
    boxes = torch.rand(batch, rows, 4, generator=generator)
    logits = torch.rand(1, batch, rows, 3, generator=generator)
    best = 3.0 - 1e-4 * torch.arange(rows)  # each nearly tied with the next, the first with the last not
    best[rows // 2 :] -= 1.0
    return boxes, logits.scatter(-1, logits.argmax(-1, keepdim=True), best.expand(1, batch, rows)[..., None])


SWAPPED = [1, 0, 2, 3, 5, 4, *range(6, 12)]
"""Within the ties."""


def batched(permutation, wanted, paths=((1, 0), (1, 1))):
    found = [w.numpy()[..., permutation, :] for w in wanted]
    order = row_orders(wanted, paths, found)
    return [a[order[i]] if i in order else a for i, a in enumerate(found)]


def test_queries_sorted_by_their_best_class_are_put_back_in_every_item():
    wanted = queries()
    for array, output in zip(batched(SWAPPED, wanted), wanted, strict=True):
        assert array.shape == tuple(output.shape)
        np.testing.assert_array_equal(array, output.numpy())


def test_rows_sorted_by_a_column_are_put_back():
    boxes, logits = queries()
    rows = torch.cat([boxes, logits[0].amax(-1, keepdim=True)], -1)
    np.testing.assert_array_equal(batched(SWAPPED, (rows,), ((0,),))[0], rows.numpy())


def test_queries_of_other_scores_stay_where_they_are():
    wanted = queries()
    moved = batched([11, *range(1, 11), 0], wanted)
    assert all((a != w.numpy()).any() for a, w in zip(moved, wanted, strict=True))


def test_a_class_stays_with_its_query():
    boxes, logits = queries()
    found = [boxes.numpy()[:, SWAPPED], logits.numpy()]  # boxes alone have changed places
    order = row_orders((boxes, logits), ((1, 0), (1, 1)), found)
    moved = [a[order[i]] if i in order else a for i, a in enumerate(found)]
    assert any((a != w.numpy()).any() for a, w in zip(moved, (boxes, logits), strict=True))


def test_features_without_scores_keep_their_order():
    features = torch.rand(2, 12, 5, generator=torch.Generator().manual_seed(1))
    constant = torch.cat([features, torch.zeros(2, 12, 1)], -1)  # falls nowhere: no score
    for wanted in (features, constant):
        assert (batched(SWAPPED, (wanted,), ((0,),))[0] != wanted.numpy()).any()


def test_neighbouring_infinities_are_no_error():
    scores = torch.tensor([float("inf"), float("inf"), 0.5, 0.2, 0.1])
    assert orders([0, 1, 2, 3, 4], wanted=(BOXES, LABELS, scores))[1] == {}


def test_rows_of_outputs_apart_are_put_back():
    """Boxes (batch, rows, 4), classes and scores (batch, rows), as suppression in an engine's form gives them."""
    boxes, logits = queries()
    apart = (boxes, torch.arange(24).reshape(2, 12), logits[0].amax(-1))
    paths = ((0, "boxes"), (0, "classes"), (0, "scores"))
    found = [a.numpy()[:, SWAPPED] for a in apart]
    order = row_orders(apart, paths, found)
    for index, wanted in enumerate(apart):
        np.testing.assert_array_equal(found[index][order[index]], wanted.numpy())
    alone = [found[0], apart[1].numpy(), apart[2].numpy()]  # boxes alone have changed places
    order = row_orders(apart, paths, alone)
    moved = [a[order[i]] if i in order else a for i, a in enumerate(alone)]
    assert any((a != w.numpy()).any() for a, w in zip(moved, apart, strict=True))


def test_a_mask_is_no_score():
    """Of ones and zeros nothing but the mask itself tells which row is which."""
    wanted = (torch.arange(48.0).reshape(2, 12, 2), torch.tensor([[1.0] * 7 + [0.0] * 5] * 2))
    found = [wanted[0].numpy()[:, [1, 0, *range(2, 12)]], wanted[1].numpy()]
    assert row_orders(wanted, [(0,), (1,)], found) == {}


def test_equal_numbers_are_no_scores():
    wanted = (torch.arange(8.0).reshape(4, 2), torch.zeros(4))
    assert row_orders(wanted, [(0,), (1,)], [wanted[0].numpy()[::-1], wanted[1].numpy()]) == {}


def test_equal_scores_that_the_file_rounds_otherwise_may_change_places():
    wanted = (torch.arange(6.0).reshape(3, 2), torch.tensor([0.7, 0.7, 0.2]))
    found = [wanted[0].numpy()[[1, 0, 2]], np.nextafter(wanted[1].numpy(), [1, 0, 0], dtype=np.float32)]
    assert set(row_orders(wanted, [(0,), (1,)], found)) == {0, 1}
