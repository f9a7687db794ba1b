"""Judges outputs whose rows a model selects, as detectors do: each row is looked for among the file's, wherever it is.

A score that moves by a rounding puts a box in another place, above the threshold or below it. Whoever uses the boxes
does not mind the order; how many boxes come or go is compared with what eager torch does itself when its operations
round as coarsely as the format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.order import WIDEST_ROW, are_sorted, scores_of_rows
from torch_onnx_compat.inputs import tree

SHARE = 0.2
"""Largest share of rows, of both sides together, that may have no counterpart, whatever eager torch's own is."""

RUNS = 6
"""Runs of the original that are asked at most."""


@dataclass(frozen=True)
class RowGroup:
    """Outputs that share their rows.

    Attributes:
        members: Their numbers.
        is_batched: Whether rows are the axis before the last, (..., rows, columns), or the first, (rows, ...).
    """

    members: tuple[int, ...]
    is_batched: bool

    def items(self, outputs: Sequence[Array]) -> list[list[Array]]:
        """The group's arrays (rows, columns), for each item of the batch."""
        arrays = [outputs[i] for i in self.members]
        if not self.is_batched:
            return [[a.reshape(len(a), prod(a.shape[1:])) for a in arrays]]
        stacks = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
        return [list(item) for item in zip(*stacks, strict=True)]


def row_groups(outputs: Sequence[Array], paths: Sequence[tree.Path]) -> list[RowGroup]:
    """Finds the outputs whose rows are sorted by a score, which says that the model selected them.

    Args:
        outputs: The original's outputs on the example.
        paths: Where each of them is in its result; the outputs of one container may share their rows.
    """
    found: list[RowGroup] = []
    by_length: dict[tuple[tree.Path, int], list[int]] = defaultdict(list)
    for index, (array, path) in enumerate(zip(outputs, paths, strict=True)):
        if array.ndim:
            by_length[path[:-1], len(array)].append(index)
    for members in by_length.values():
        if any(are_sorted(outputs[i]) for i in members):
            found.append(RowGroup(tuple(members), False))
    taken = {index for group in found for index in group.members}
    for index, array in enumerate(outputs):
        if index in taken or array.ndim < 3 or not array.size:
            continue
        rows = array.reshape(-1, *array.shape[-2:])
        if scores_of_rows(rows, rows) is not None:
            found.append(RowGroup((index,), True))
    return found


@dataclass(frozen=True)
class Matches:
    """Which rows of two runs are each other's.

    Attributes:
        pairs: How many rows have a counterpart.
        rows: How many there are, on both sides.
        worst: The largest error of a value in a pair.
    """

    pairs: int
    rows: int
    worst: float

    @property
    def share(self) -> float:
        """The share of rows that have none."""
        return 1.0 - 2 * self.pairs / self.rows if self.rows else 0.0


def match_rows(group: RowGroup, found: Sequence[Array], exact: Sequence[Array], bound: float) -> Matches:
    """Looks for each row of the exact outputs among the found ones; every value of a pair is within the bound.

    Args:
        group: The outputs that share their rows.
        found: The outputs of one run.
        exact: What they should be.
        bound: Largest error of a value, relative to the value or to what is usual in its column.
    """
    pairs, rows, worst = 0, 0, 0.0
    for theirs, own in zip(group.items(found), group.items(exact), strict=True):
        count = len(own[0]), len(theirs[0])
        rows += sum(count)
        if not all(count):
            continue
        errors = np.zeros(count)
        for f, w in zip(theirs, own, strict=True):
            if f.shape[1] != w.shape[1]:
                return Matches(0, rows, float("inf"))
            if 0 < w.shape[1] <= WIDEST_ROW:
                errors = np.maximum(errors, _errors(f, w))
        for row in errors:
            column = int(row.argmin())
            if row[column] <= bound:
                pairs, worst = pairs + 1, max(worst, float(row[column]))
                errors[:, column] = np.inf
    return Matches(pairs, rows, worst)


def _errors(found: Array, exact: Array) -> Array:
    """The largest error of a value, for each exact row (R, C) and each found row (F, C), (R, F)."""
    if exact.dtype.kind != "f":
        return np.stack([np.where((row != found).any(axis=1), np.inf, 0.0) for row in exact])
    wide, wanted = found.astype(np.float64), exact.astype(np.float64)
    usual = np.sqrt(np.mean(np.square(np.where(np.isfinite(wanted), wanted, 0.0)), axis=0))
    with np.errstate(invalid="ignore"):
        rows = [(np.abs(row - wide) / np.maximum(np.maximum(np.abs(row), usual), 1e-30)).max(axis=1) for row in wanted]
    errors: Array = np.nan_to_num(np.stack(rows), nan=np.inf)
    return errors


def largest_own_share(
    group: RowGroup, runs: Iterable[Sequence[Array]], exact: Sequence[Array], bound: float, enough: float
) -> float:
    """The largest share of rows without a counterpart in runs of the original itself.

    Args:
        group: The outputs that share their rows.
        runs: Outputs of these runs; no more of them are made than are needed.
        exact: What they should be.
        bound: Largest error of a value in a pair.
        enough: The share from which on no further run is asked.
    """
    largest = 0.0
    for outputs in runs:
        largest = max(largest, match_rows(group, outputs, exact, bound).share)
        if largest >= enough:
            break
    return largest
