"""Compares the outputs of one case, and decides whether the model's own rounding explains a difference.

A difference beyond the tolerance is no fault of the file where eager torch itself moves as far once its operations
round otherwise. That is asked at every single value: a noisy value excuses no other. Some decisions depend on a
rounding, such as which of two nearly equal cells is the largest, or whether a score exceeds a threshold; a value that
eager torch decides otherwise in one of these runs may be decided otherwise by the file. Equal values may be sorted in
either order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import (
    NOISE_FACTOR,
    NOISE_LIMIT,
    Array,
    Comparison,
    as_array,
    compare,
    is_close,
)
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.order import row_orders
from torch_onnx_compat.check.perturbed_runs import runs_rounded_otherwise, runs_with_ties_broken
from torch_onnx_compat.check.quantized import is_quantized, judge_by_spread
from torch_onnx_compat.check.random_numbers import is_decided_by_draws
from torch_onnx_compat.check.steps import runs_fallen_otherwise
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation, Reference

STEP = 1.0
"""Largest change by one operation in the runs that show the noise, in units of the last place."""

RUNS = 16
"""Largest number of these runs."""

DECISION_STEPS = (4.0, 16.0, 32.0)
"""The same, in turn, in the runs that show decisions: enough to cross a threshold that a file's rounding crosses."""

DECISION_RUNS = 24
"""Largest number of these runs."""

BUDGET_S = 20.0
"""Seconds of this thread that the runs of either kind may take together: other work on the machine decides nothing."""

FEWEST_RUNS = 6
"""Runs of either kind that are made whatever they take."""

SHARE = 0.2
"""Largest share of an output's values that may be decided otherwise."""

RESIDUE = 0.1
"""Largest number of values that are decided otherwise where no run showed it, as a share of those where one did."""

FEWEST_DECISIONS = 20
"""Values that are decided otherwise where a run showed it, from which on such a share means something."""

JUMP = 3.0
"""Smallest change of a number that is decided otherwise, as a multiple of the noise there at that step."""

MANY = 4
"""Different whole numbers at one place of as many runs, from which on any number between them may stand there."""

FEWER_OFF = 0.5
"""Largest number of values that are off in another order of equal values, as a share of those in torch's order."""

_MOVED = "rows of equal score in another order"
_TIED = "equal values in another order than eager torch's, which promises none"
_OTHERWISE = "when its operations round otherwise"
_CHANGES = (2.0**-18, 2.0**-17, 2.0**-16)
"""Relative changes of a quantized model's inputs, in turn: its operations round to whole steps."""


def compare_outputs(
    names: Sequence[str],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
    limit: float = NOISE_LIMIT,
    budget: float = BUDGET_S,
) -> list[Comparison]:
    """Compares the outputs of one case; those that fail are judged again by the original's rounding errors.

    Args:
        names: Names of the outputs.
        found: The file's outputs.
        case: The inputs, and the original's outputs.
        how: Tolerances; where the caller gave one, rounding excuses nothing.
        observation: Runs the original.
        limit: Largest error that the noise of eager torch excuses, relative to an output's largest value.
        budget: Seconds of this thread that the runs which show its noise, or its decisions, may take.

    Returns:
        One row for each output; a single one where the original has another number of outputs than the file.
    """
    count = len(case.reference.outputs)
    if len(found) != count:
        detail = f"{len(found)} outputs, wanted {count}: how many there are depends on the inputs; a file's are fixed"
        return [Comparison(case.label, "", float("nan"), float("nan"), "", False, detail)]
    rows, found = _compare_in_order(names, found, case, how)
    if _all_ok(rows) or is_decided_by_draws(case, observation):
        return rows
    rows, nearest = _break_ties(names, rows, found, case, how, observation)
    if not _all_ok(rows) and how.rtol is None and how.atol is None:
        rows = _judge_by_rounding(names, rows, found, nearest, how, observation, limit, budget)
    if nearest is case:
        return rows
    return [replace(r, case=case.label, detail="; ".join(filter(None, (_TIED, r.detail)))) for r in rows]


def _judge_by_rounding(
    names: Sequence[str],
    rows: list[Comparison],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
    limit: float,
    budget: float,
) -> list[Comparison]:
    """Passes the rows that fail by no more than what the original's own rounding does."""
    if is_quantized(observation.prepared.model):
        others = chain(  # the layers between two roundings to steps may compute in floats
            runs_fallen_otherwise(case, observation, len(_CHANGES)),
            runs_rounded_otherwise(case, observation, STEP, len(_CHANGES)),
            _runs_on_changed_inputs(case, observation),
        )
        return judge_by_spread(rows, found, case, _within_budget(others))
    if [a.shape for a in found] != [tuple(w.shape) for w in case.reference.outputs]:
        return _judge_by_rows(names, rows, found, case, how, observation)
    return _judge_by_values(rows, found, case, observation, limit, budget)


def _compare_in_order(
    names: Sequence[str], found: Sequence[Array], case: Case, how: Verify
) -> tuple[list[Comparison], Sequence[Array]]:
    """Compares the outputs; returns the comparisons, and the outputs with their rows in the original's order."""

    def table(arrays: Sequence[Array]) -> list[Comparison]:
        pairs = zip(names, arrays, case.reference.outputs, strict=True)
        return [compare(case.label, name, array, wanted, how.rtol, how.atol) for name, array, wanted in pairs]

    rows = table(found)
    orders = {} if _all_ok(rows) else row_orders(case.reference.outputs, case.reference.paths, found)
    if not orders:
        return rows, found
    found = [array[orders[i]] if i in orders else array for i, array in enumerate(found)]
    return [replace(r, detail=_MOVED) if r.ok and i in orders else r for i, r in enumerate(table(found))], found


def _all_ok(rows: Sequence[Comparison]) -> bool:
    return all(row.ok for row in rows)


def _orders(case: Case, other: Reference) -> dict[int, Any]:
    """The indices that bring the rows of another run of the original into the case's order."""
    values = [as_array(o.to(w.dtype)) for o, w in zip(other.outputs, case.reference.outputs, strict=True)]
    return row_orders(case.reference.outputs, case.reference.paths, values)


def _break_ties(
    names: Sequence[str],
    rows: list[Comparison],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
) -> tuple[list[Comparison], Case]:
    """Finds the order of equal values in which the original is nearest to the file.

    Returns:
        The comparisons with the original that takes equal values in that order, and the case with its outputs.
    """
    nearest = (_count_off(found, case), rows, case)
    for other in runs_with_ties_broken(case, observation):
        if _shapes(other.reference) != [a.shape for a in found]:
            continue
        again, _ = _compare_in_order(names, found, other, how)
        if _all_ok(again):
            return again, other
        off = _count_off(found, other)
        if off < FEWER_OFF * nearest[0]:
            nearest = (off, again, other)
    return nearest[1:]


def _count_off(found: Sequence[Array], case: Case) -> float:
    """How many values are off; infinite where shapes are."""
    wanted = [as_array(output) for output in case.reference.outputs]
    if [a.shape for a in wanted] != [a.shape for a in found]:
        return float("inf")
    return float(sum((~is_close(one, other)).sum() for one, other in zip(found, wanted, strict=True)))


def _shapes(reference: Reference) -> list[tuple[int, ...]]:
    return [tuple(output.shape) for output in reference.outputs]


def _within_budget(runs: Iterator[Case], budget: float = BUDGET_S) -> Iterator[Case]:
    """As many of these runs as the budget allows."""
    start = time.thread_time()
    for number, run in enumerate(runs, start=1):
        yield run
        if number >= FEWEST_RUNS and time.thread_time() - start > budget:
            return


def _runs_for_decisions(case: Case, observation: Observation) -> Iterator[Case]:
    for number in range(DECISION_RUNS):
        yield from runs_rounded_otherwise(case, observation, decision_step(number), 1, number)


def decision_step(number: int) -> float:
    """Largest change by one operation, in units of the last place, in this one of the runs that show decisions."""
    return DECISION_STEPS[number % len(DECISION_STEPS)]


def _runs_on_changed_inputs(case: Case, observation: Observation) -> Iterator[Case]:
    """Runs of a quantized original on inputs that were changed by roundings."""
    if not any(tensor.is_floating_point() for tensor in case.inputs.tensors):
        return
    for number in range(DECISION_RUNS):
        label = f"{case.label}, changed {number}"
        inputs = _change_inputs(case.inputs, _CHANGES[number % len(_CHANGES)], number)
        try:
            yield Case(label, inputs, observation.reference(label, inputs))
        except ModelRefused:
            return


def _change_inputs(inputs: Inputs, step: float, seed: int) -> Inputs:
    generator = torch.Generator().manual_seed(seed)

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        return (tensor.cpu().double() * (1 + step * noise)).to(tensor)

    return replace(inputs, tensors=tuple(change(t) for t in inputs.tensors))


class Doubt:
    """The values of one output that are off, and what has been seen of the original's own changes there.

    Args:
        found: The file's output.
        wanted: The original's, of the same shape.
        limit: Largest error that noise excuses, relative to the largest value.
    """

    def __init__(self, found: Array, wanted: Array, limit: float) -> None:
        self.places = np.flatnonzero(~is_close(found, wanted))
        """Those that nothing explains yet."""
        self.size, self.count = wanted.size, len(self.places)
        self._found, self._wanted = found.reshape(-1), wanted.reshape(-1)
        self.is_float = wanted.dtype.kind == "f"
        """Whether the output is one of real numbers."""
        self._seen: list[Array] = []
        self._noise, self._small_noise = np.zeros(wanted.size), np.zeros(wanted.size)
        self._jumps, self._has_jumped, self._has_stayed = (np.zeros(wanted.size, dtype=bool) for _ in range(3))
        self._last_jump = np.full(wanted.size, np.nan)
        self._error = _distance(self._found, self._wanted) if self.is_float else np.zeros(wanted.size)
        finite = wanted[np.isfinite(wanted)] if self.is_float else wanted
        magnitude = float(np.abs(finite.astype(np.float64)).max(initial=0.0)) or 1.0
        self._largest, self._jump = limit * magnitude, NOISE_LIMIT * magnitude
        self._range = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        self.by_noise = self.by_decision = 0
        """How many values each of the two explains."""
        self.ratio = 0.0
        """The largest error that noise explains, as a multiple of the noise there."""

    @property
    def is_hopeless(self) -> bool:
        """Whether neither noise nor decisions can explain what is off."""
        large = self._error[self.places] > self._largest if self.is_float else np.ones(len(self.places))
        return bool(large.sum() > SHARE * self.size)

    @property
    def is_explained(self) -> bool:
        """Whether nothing is left to explain, or little where many values were decided otherwise."""
        many = RESIDUE * self.by_decision if self.by_decision >= FEWEST_DECISIONS else 0
        return len(self.places) <= many

    def explain_by_noise(self, value: Array) -> None:
        """Takes in an output of a run that shows the noise, and crosses off the places that it explains.

        A change of more than noise may excuse is none, where it comes and goes: something is decided otherwise there.
        What changes alike in all runs is not rounding.
        """
        value = value.reshape(-1).astype(np.float64)
        change = np.nan_to_num(_distance(value, self._wanted), posinf=0.0)
        jumps = change > self._jump
        with np.errstate(invalid="ignore"):
            to_another = jumps & (np.abs(value - self._last_jump) > self._jump)
        self._jumps |= to_another | (self._has_jumped & ~jumps) | (self._has_stayed & jumps)
        self._has_jumped, self._has_stayed = self._has_jumped | jumps, self._has_stayed | ~jumps
        self._last_jump = np.where(jumps, value, self._last_jump)
        self._noise = np.maximum(self._noise, change)
        self._small_noise = np.maximum(self._small_noise, np.where(jumps, 0.0, change))
        error, noise = self._error[self.places], self._noise[self.places]
        explained = error <= np.minimum(NOISE_FACTOR * noise, self._largest)
        self.ratio = max(self.ratio, float((error[explained] / noise[explained]).max(initial=0.0)))
        self.by_noise += int(explained.sum())
        self.places = self.places[~explained]

    def explain_by_decision(self, value: Array) -> None:
        """Takes in an output of a run that shows decisions, and crosses off the places that all runs explain.

        At such a place eager torch's value jumped too, and what the file has there lies among the values seen.
        """
        step = decision_step(len(self._seen))
        self._seen.append(value.reshape(-1))
        if self.is_float:
            moved = _distance(self._seen[-1], self._wanted) > JUMP * step * self._noise
            self._jumps |= moved & ~is_close(self._seen[-1], self._wanted)
        seen = np.stack([run[self.places] for run in self._seen])
        found = self._found[self.places]
        if self.is_float:
            among = _is_among_numbers(found, self._wanted[self.places], seen)
            least, most = self._range
            among |= self._is_any(seen) & (found >= least) & (found <= most)
            explained = self._jumps[self.places] & among
        else:
            explained = _is_among_choices(found, seen)
        self.by_decision += int(explained.sum())
        self.places = self.places[~explained]

    def _is_any(self, seen: Array) -> Array:
        """Whether so many different numbers stand at a place in the runs (runs, places) that the next is another one.

        A row at the cut of the best ones is such a place: one of many takes it.
        """
        ordered = np.sort(seen.astype(np.float64), axis=0)
        apart = JUMP * DECISION_STEPS[-1] * self._small_noise[self.places]
        with np.errstate(invalid="ignore"):  # two infinities have no difference
            result: Array = (np.diff(ordered, axis=0) > apart).sum(0) + 1 >= MANY
        return result


def _is_among_numbers(found: Array, wanted: Array, seen: Array) -> Array:
    """Whether a value is one of those in the runs (runs, places), or at most half as far outside as they differ."""
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = np.fmin(seen.min(0), wanted).astype(np.float64), np.fmax(seen.max(0), wanted).astype(np.float64)
        margin = (high - low) / 2
        inside = (found >= low - margin) & (found <= high + margin) & np.isfinite(found)
        same = ((seen == found) | (np.isnan(seen) & np.isnan(found))).any(0)
    result: Array = same | inside
    return result


def _is_among_choices(found: Array, seen: Array) -> Array:
    """Whether some run has the file's whole number, or so many different ones that it would be found in more runs."""
    ordered = np.sort(seen, axis=0)
    several = (ordered[1:] != ordered[:-1]).sum(0) + 1 >= MANY
    result: Array = (seen == found).any(0) | (several & (found >= ordered[0]) & (found <= ordered[-1]))
    return result


def _distance(found: Array, wanted: Array) -> Array:
    """Absolute differences; infinite where only one of two values is finite, or they are different infinities."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart: Array = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.nan_to_num(apart, nan=np.inf, posinf=np.inf)


def _judge_by_values(
    rows: list[Comparison],
    found: Sequence[Array],
    case: Case,
    observation: Observation,
    limit: float,
    budget: float,
) -> list[Comparison]:
    """Passes the rows of which every value that is off is explained by what eager torch's own value there does."""
    wanted = [as_array(output) for output in case.reference.outputs]
    failed = [i for i, row in enumerate(rows) if not row.ok]
    if any((found[i].dtype, found[i].shape) != (wanted[i].dtype, wanted[i].shape) for i in failed):
        return rows
    doubts = {i: Doubt(found[i], wanted[i], limit) for i in failed}
    if any(doubt.is_hopeless for doubt in doubts.values()):
        return rows
    numbers = {i: doubt for i, doubt in doubts.items() if doubt.is_float}
    runs = _within_budget(runs_rounded_otherwise(case, observation, STEP, RUNS), budget)
    _explain(numbers, case, runs, Doubt.explain_by_noise)
    if any(len(doubt.places) > SHARE * doubt.size for doubt in doubts.values()):
        return rows
    runs = _within_budget(_runs_for_decisions(case, observation), budget)
    _explain(doubts, case, runs, Doubt.explain_by_decision)
    return [_describe(row, doubts[i]) if i in doubts else row for i, row in enumerate(rows)]


def _explain(
    doubts: dict[int, Doubt], case: Case, runs: Iterator[Case], explain: Callable[[Doubt, Array], None]
) -> None:
    """Makes runs of the original until they explain every place, or there are no more."""
    while any(len(doubt.places) for doubt in doubts.values()):
        other = next(runs, None)
        if other is None:
            return
        for i, value in _values_in_order(case, other):
            if i in doubts:
                explain(doubts[i], value)


def _values_in_order(case: Case, other: Case) -> Iterator[tuple[int, Array]]:
    """The outputs of another run of the original, by number, with their rows in the case's order."""
    if _shapes(other.reference) != _shapes(case.reference):
        return
    orders = _orders(case, other.reference)
    for i, output in enumerate(other.reference.outputs):
        value = as_array(output)
        yield i, value[orders[i]] if i in orders else value


def _describe(row: Comparison, doubt: Doubt) -> Comparison:
    """The row, passed where nothing is left to explain."""
    if not doubt.is_explained:
        return row
    parts = []
    if doubt.by_noise:
        parts.append(f"{doubt.by_noise} values off by up to {doubt.ratio:.1f} x eager torch's own change there")
    if doubt.by_decision:
        unseen = f" and {len(doubt.places)} elsewhere" if len(doubt.places) else ""
        parts.append(f"{doubt.by_decision} values off where eager torch's own move{unseen}")
    tolerance = f"{NOISE_FACTOR:g} x noise" if doubt.by_noise else row.tolerance
    return replace(row, ok=True, tolerance=tolerance, detail=f"{', '.join(parts)} {_OTHERWISE}")


def _judge_by_rows(
    names: Sequence[str],
    rows: list[Comparison],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
) -> list[Comparison]:
    """Compares with another run of the original that has as many rows as the file, if there is one."""
    shapes = [array.shape for array in found]
    pairs = zip(shapes, _shapes(case.reference), strict=True)
    if any(len(a) != len(b) or not a or a[1:] != b[1:] for a, b in pairs):
        return rows
    for other in _within_budget(_runs_for_decisions(case, observation)):
        if _shapes(other.reference) == shapes:
            again, _ = _compare_in_order(names, found, other, how)
            if _all_ok(again):
                detail = f"as many rows as eager torch has {_OTHERWISE}"
                return [replace(row, case=case.label, detail=detail) for row in again]
    return rows
