"""Compares the outputs of one case, and decides whether the model's own rounding explains a difference.

Where eager torch is itself as far from float64 as the file is, the model amplifies rounding. Some decisions depend on a
rounding, such as which of two equal cells is the largest, or whether a score exceeds a threshold. The original then
decides otherwise too once its inputs change by a few roundings, and the file may return that other result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from torch_onnx_compat.check.cases import Case, Verify
from torch_onnx_compat.check.compare import (
    NOISE_LIMIT,
    Array,
    Comparison,
    as_array,
    compare,
    is_close,
    judge_by_noise,
)
from torch_onnx_compat.check.order import row_orders
from torch_onnx_compat.check.quantized import is_quantized, judge_by_spread
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation, Reference

RUNS = 24
"""Largest number of runs of the original on inputs that were changed by roundings."""

BUDGET_S = 20.0
"""Seconds that these runs may take together; twelve are made in any case."""

STEPS = (2.0**-18, 2.0**-17, 2.0**-16)
"""Relative changes of the inputs, in turn: several roundings of float32, as the layers of a network add up."""

SHARE = 0.2
"""Largest share of an output's values that may be decided otherwise."""

_MOVED = "rows of equal score in another order"
_OTHERWISE = "when its inputs change by a few roundings"


def compare_outputs(
    names: Sequence[str],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
    limit: float = NOISE_LIMIT,
) -> list[Comparison]:
    """Compares the outputs of one case; those that fail are judged again by their rounding errors.

    Args:
        names: Names of the outputs.
        found: The file's outputs.
        case: The inputs, and the original's outputs.
        how: Tolerances; where the caller gave one, rounding excuses nothing.
        observation: Runs the original.
        limit: Largest error that the noise of eager torch excuses, relative to an output's largest value.
    """
    rows, found = _compare_in_order(names, found, case, how)
    if how.rtol is not None or how.atol is not None or _all_ok(rows):
        return rows
    rows = _judge_by_float64(rows, found, case, observation, limit)
    if is_quantized(observation.prepared.model):
        return judge_by_spread(rows, found, case, _runs_after_rounding(case, observation))
    if _all_ok(rows) or not all(row.ok or _is_near(a, w) for row, a, w in _triples(rows, found, case)):
        return rows
    if not any(tensor.is_floating_point() for tensor in _weights(observation)):
        return rows  # without weights nothing is rounded before a decision: the inputs are exact
    others = _runs_after_rounding(case, observation)
    if [a.shape for a in found] == [tuple(w.shape) for w in case.reference.outputs]:
        return _judge_by_values(others, rows, found, case)
    return _judge_by_rows(others, names, rows, found, case, how, observation)


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


def _weights(observation: Observation) -> Iterator[torch.Tensor]:
    model = observation.prepared.model
    yield from model.parameters()
    yield from model.buffers()


def _triples(
    rows: Sequence[Comparison], found: Sequence[Array], case: Case
) -> Iterator[tuple[Comparison, Array, torch.Tensor]]:
    return zip(rows, found, case.reference.outputs, strict=True)


def _judge_by_float64(
    rows: list[Comparison], found: Sequence[Array], case: Case, observation: Observation, limit: float = NOISE_LIMIT
) -> list[Comparison]:
    """Judges the failed rows by a run in float64."""
    doubtful = [
        not row.ok and w.is_floating_point() and w.dtype is not torch.float64 and a.shape == tuple(w.shape)
        for row, a, w in _triples(rows, found, case)
    ]
    if not any(doubtful):
        return rows
    try:
        exact = observation.reference(f"{case.label} in float64", case.inputs, torch.float64)
    except ModelRefused:
        return rows
    if [o.shape for o in exact.outputs] != [o.shape for o in case.reference.outputs]:
        return rows
    orders = _orders(case, exact)
    return [
        judge_by_noise(row, array, wanted, value[orders[i]] if i in orders else value, limit) if doubtful[i] else row
        for i, ((row, array, wanted), value) in enumerate(zip(_triples(rows, found, case), exact.outputs, strict=True))
    ]


def _orders(case: Case, other: Reference) -> dict[int, Any]:
    """The indices that bring the rows of another run of the original into the case's order."""
    values = [as_array(o.to(w.dtype)) for o, w in zip(other.outputs, case.reference.outputs, strict=True)]
    return row_orders(case.reference.outputs, case.reference.paths, values)


def _is_near(found: Array, wanted: torch.Tensor) -> bool:
    """Whether a decision or two could explain a failed row: few values are off, or the number of rows differs."""
    reference = as_array(wanted)
    if found.ndim == 0 or found.dtype != reference.dtype or found.shape[1:] != reference.shape[1:]:
        return False
    return len(found) != len(reference) or bool((~is_close(found, reference)).mean() <= SHARE)


def _runs_after_rounding(case: Case, observation: Observation) -> Iterator[Case]:
    """Runs of the original on inputs that were changed by roundings."""
    if not any(tensor.is_floating_point() for tensor in case.inputs.tensors):
        return
    for number in range(max(12, min(RUNS, int(BUDGET_S / max(case.reference.seconds, 1e-3))))):
        label = f"{case.label}, rounded {number}"
        inputs = _perturb_inputs(case.inputs, STEPS[number % len(STEPS)], number)
        try:
            yield Case(label, inputs, observation.reference(label, inputs))
        except ModelRefused:
            return


def _perturb_inputs(inputs: Inputs, step: float, seed: int) -> Inputs:
    generator = torch.Generator().manual_seed(seed)

    def perturb(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        return (tensor.cpu().double() * (1 + step * noise)).to(tensor)

    return replace(inputs, tensors=tuple(perturb(t) for t in inputs.tensors))


def _judge_by_values(
    others: Iterator[Case], rows: list[Comparison], found: Sequence[Array], case: Case
) -> list[Comparison]:
    """Passes the rows in which no more values are off than in eager torch's own output after a rounding."""
    wanted = {i: as_array(w) for i, (row, _, w) in enumerate(_triples(rows, found, case)) if not row.ok}
    off = {i: _count_wrong(found[i], w) for i, w in wanted.items()}
    own = dict.fromkeys(off, 0)
    for other in others:
        if [o.shape for o in other.reference.outputs] != [o.shape for o in case.reference.outputs]:
            continue
        orders = _orders(case, other.reference)
        for i, w in wanted.items():
            value = as_array(other.reference.outputs[i])
            own[i] = max(own[i], _count_wrong(value[orders[i]] if i in orders else value, w))
        if all(off[i] <= own[i] for i in off):
            break
    return [
        replace(row, ok=True, detail=f"{off[i]} values off, {own[i]} of eager torch's own {_OTHERWISE}")
        if i in off and off[i] <= own[i]
        else row
        for i, row in enumerate(rows)
    ]


def _count_wrong(found: Array, wanted: Array) -> int:
    return int((~is_close(found, wanted)).sum())


def _judge_by_rows(
    others: Iterator[Case],
    names: Sequence[str],
    rows: list[Comparison],
    found: Sequence[Array],
    case: Case,
    how: Verify,
    observation: Observation,
) -> list[Comparison]:
    """Compares with another run of the original that has as many rows as the file, if there is one."""
    shapes = [array.shape for array in found]
    for other in others:
        if [tuple(o.shape) for o in other.reference.outputs] == shapes:
            again, arrays = _compare_in_order(names, found, other, how)
            again = _judge_by_float64(again, arrays, other, observation)
            if _all_ok(again):
                return [
                    replace(row, case=case.label, detail=f"as many rows as eager torch has {_OTHERWISE}")
                    for row in again
                ]
    return rows
