"""Puts rows that a model sorts by score in eager torch's order, where scores are equal but for rounding.

Detectors and top-k selections return several outputs row by row, best score first. Two rows whose scores differ by less
than the tolerance may come in either order. The outputs of one row stay together: rounding does not decide which box
belongs to which label. Nor does it decide anything where all scores are equal to the last bit, both in the original and
in the file: a mask of ones and zeros falls, too, and is no score.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from torch import Tensor

from torch_onnx_compat.check.compare import Array, allowance, as_array
from torch_onnx_compat.inputs import tree

WIDEST_ROW = 4096
"""Outputs with more values in a row, such as masks, are moved along, but rows are not told apart by them."""


_FEWEST_ROWS = 8
"""Rows in which a column must fall to count as scores: over fewer rows any numbers may fall by chance."""


def row_orders(outputs: Sequence[Tensor], paths: Sequence[tree.Path], found: Sequence[Array]) -> dict[int, Any]:
    """Finds the order in which the rows of a file's outputs are the original's rows.

    Outputs in one container of the original's result share their rows if one of them holds sorted scores. Where the
    scores have the shape (rows,), rows are the first axis. In outputs of shape (..., rows) and (..., rows, columns) the
    scores are one of the former, a column of one of the latter, or the largest value in each of its rows.

    Args:
        outputs: The original's outputs.
        paths: Where each of them is in the original's result; those of one container belong together.
        found: The file's outputs.

    Returns:
        For every output whose rows have to be moved, by its number, the index that moves them.
    """
    orders: dict[int, Any] = {}
    wanted = [as_array(output) for output in outputs]
    for (_, batch, rows), members in _groups(wanted, paths, found).items():
        own, theirs = [wanted[i] for i in members], [found[i] for i in members]
        if batch is None:
            order = _order(own, theirs)
            orders.update({} if order is None else dict.fromkeys(members, order))
            continue
        shape = (batch, rows, -1)
        by_item = _orders([a.reshape(shape) for a in own], [a.reshape(shape) for a in theirs])
        if by_item is not None:
            orders |= {i: _index(by_item, leading) for i, leading in members.items() if i not in orders}
    return orders


def _groups(
    wanted: list[Array], paths: Sequence[tree.Path], found: Sequence[Array]
) -> dict[tuple[tree.Path, int | None, int], dict[int, tuple[int, ...]]]:
    """The outputs that share their rows, each with the axes before them.

    They are told apart by container, items of a batch (None where rows are the first axis) and rows.
    """
    groups: dict[tuple[tree.Path, int | None, int], dict[int, tuple[int, ...]]] = defaultdict(dict)
    for index, (array, path) in enumerate(zip(wanted, paths, strict=True)):
        if not array.ndim or array.shape != found[index].shape:
            continue
        if len(array) > 1:
            groups[path[:-1], None, len(array)][index] = ()
        for axis in range(max(1, array.ndim - 2), array.ndim):
            if array.shape[axis] >= _FEWEST_ROWS and array.size:
                leading = array.shape[:axis]
                groups[path[:-1], prod(leading), array.shape[axis]].setdefault(index, leading)
    return groups


def _order(wanted: list[Array], found: list[Array]) -> Array | None:
    """For each of the original's rows the number of the file's row that it is; None where the order is right."""
    which = next((i for i, a in enumerate(wanted) if are_sorted(a)), None)
    if which is None:
        return None
    order = _match_rows(wanted[which], found[which], wanted, found)
    return None if (order == np.arange(len(order))).all() else order


def _orders(wanted: list[Array], found: list[Array]) -> Array | None:
    """The same for arrays (batch, rows, columns): an order for each item of the batch, (batch, rows)."""
    scores = next((s for s in map(scores_of_rows, wanted, found) if s is not None), None)
    if scores is None:
        return None
    items = [
        _match_rows(key, own, [w[i] for w in wanted], [f[i] for f in found])
        for i, (key, own) in enumerate(zip(*scores, strict=True))
    ]
    order = np.stack(items)
    return None if (order == np.arange(order.shape[1])).all() else order


def _match_rows(key: Array, own: Array, wanted: list[Array], found: list[Array]) -> Array:
    """The number of the file's row that each of the original's is, by the original's scores and the file's own."""
    order = np.arange(len(key))
    for start, end in _ties(key):
        if _is_one(key[start:end]) and _is_one(own[start:end]):
            continue
        costs = [_distances(w[start:end], f[start:end]) for w, f in zip(wanted, found, strict=True)]
        order[start:end] = start + _assign_rows(np.sum(costs, axis=0))
    return order


def _index(order: Array, leading: tuple[int, ...]) -> tuple[Array, ...]:
    """The index that takes the rows of an array (*leading, rows, columns) in this order, (batch, rows)."""
    return (*(grid[..., None] for grid in np.indices(leading)), order.reshape(*leading, -1))


def are_sorted(array: Array) -> bool:
    """Whether an output may be the scores (rows,) by which rows are sorted."""
    return array.ndim == 1 and array.dtype.kind == "f" and bool(_falls(array).all())


def _falls(array: Array, axis: int = 0) -> Array:
    """Whether each value is at most the one before; not a difference, which two infinities do not have."""
    return np.take(array, range(1, array.shape[axis]), axis) <= np.take(array, range(array.shape[axis] - 1), axis)


def _is_one(scores: Array) -> bool:
    return bool((scores == scores[0]).all())


def scores_of_rows(array: Array, found: Array) -> tuple[Array, Array] | None:
    """The scores (batch, rows) by which the rows of (batch, rows, columns) are sorted, and the file's own.

    None where they are not sorted.
    """
    if array.dtype.kind != "f" or array.shape[2] > WIDEST_ROW:
        return None
    falling = np.flatnonzero(_falls(array, 1).all(axis=(0, 1)))
    pairs = (*((array[..., column], found[..., column]) for column in falling), (array.max(axis=2), found.max(axis=2)))
    with np.errstate(invalid="ignore", over="ignore"):  # two infinities have no difference
        for key, own in pairs:
            if all(are_sorted(k) and k[0] - k[-1] > allowance(k).max() for k in key):
                return np.asarray(key), np.asarray(own)
    return None


def _ties(key: Array) -> list[tuple[int, int]]:
    """Ranges of more than one row, each row within the tolerance of the one before it."""
    with np.errstate(invalid="ignore", over="ignore"):  # two infinities have no difference; they are equal
        close = (key[1:] == key[:-1]) | (-np.diff(key) <= allowance(key)[1:])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], close, [False])).astype(np.int8)))
    return [(int(a), int(b) + 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _distances(wanted: Array, found: Array) -> Array:
    """The distance of each of the original's rows from each of the file's, in tolerances."""
    count = len(wanted)
    a, b = wanted.reshape(count, -1), found.reshape(count, -1)
    if a.shape[1] > WIDEST_ROW:
        return np.zeros((count, count))
    if a.dtype.kind != "f":
        return np.array([(row != b).sum(axis=1) for row in a], dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        units = [np.abs(row - b) / np.maximum(allowed, 1e-30) for row, allowed in zip(a, allowance(a), strict=True)]
    worst = np.stack([unit.max(axis=1, initial=0.0) for unit in units])
    return np.asarray(np.nan_to_num(worst, nan=0.0, posinf=1e30))


def _assign_rows(costs: Array) -> Array:
    """A column for each row, chosen greedily by cost; rows that are right where they stand stay."""
    chosen = np.full(len(costs), -1)
    for place in np.flatnonzero(np.diag(costs) <= 1.0):
        chosen[place] = place
    free = np.ones(len(costs), dtype=bool)
    free[chosen[chosen >= 0]] = False
    for row in np.flatnonzero(chosen < 0):
        column = int(np.argmin(np.where(free, costs[row], np.inf)))
        chosen[row], free[column] = column, False
    return chosen
