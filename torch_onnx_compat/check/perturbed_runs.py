"""Runs of the original on a case's inputs in which it rounds otherwise, or breaks ties otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from torch.utils._python_dispatch import TorchDispatchMode

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.perturb import BreakTies, RoundOtherwise
from torch_onnx_compat.observe import ModelRefused, Observation


def runs_rounded_otherwise(
    case: Case, observation: Observation, step: float, count: int, first: int = 0
) -> Iterator[Case]:
    """Runs of the original on a case's inputs, in which its operations round otherwise.

    Args:
        case: The inputs.
        observation: Runs the original.
        step: Largest change by an operation, in units of the last place.
        count: How many runs.
        first: Number of the first, which makes the changes.
    """
    for number in range(first, first + count):
        label = f"{case.label}, rounded by {step:g}, {number}"
        yield from run_within(label, case, observation, RoundOtherwise(step, number))


def runs_with_ties_broken(case: Case, observation: Observation) -> Iterator[Case]:
    """Runs of the original that sort equal values by their places, and by their places from the last.

    Args:
        case: The inputs.
        observation: Runs the original.
    """
    for word, lowest_first in (("first", True), ("last", False)):
        mode = BreakTies(lowest_first=lowest_first)
        for run in run_within(f"{case.label}, {word} of equal values", case, observation, mode):
            yield replace(run, lowest_first=lowest_first)
        if not mode.has_ties:
            return


def run_within(label: str, case: Case, observation: Observation, mode: TorchDispatchMode) -> Iterator[Case]:
    """A run inside a mode, with equal values in the case's order; none where the model does not run in it."""
    try:
        reference = observation.reference(label, case.inputs, within=_in_order(case.lowest_first, mode))
    except ModelRefused:
        return
    yield replace(case, label=label, reference=reference)


@contextmanager
def _in_order(lowest_first: bool | None, mode: TorchDispatchMode) -> Iterator[None]:
    """Both modes, that which breaks ties below: what the other one changes has its own ties."""
    with nullcontext() if lowest_first is None else BreakTies(lowest_first=lowest_first), mode:
        yield
