"""Random numbers that decide what the original computes: no file draws the same ones, so none can be right.

Few values may be the same by chance, and what differs from draw to draw looks like rounding. So the numbers are
followed to the outputs. Where they reach one, the original is run on the same inputs with the rarest numbers, and with
others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import torch

from torch_onnx_compat.caller.undo import seeded
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import as_array, compare
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.random_modes import DrawTrace, RareDraws
from torch_onnx_compat.errors import RandomModel
from torch_onnx_compat.observe import ModelRefused, Observation, Reference
from torch_onnx_compat.time_limit import TimeLimit, TooLong

RUNS = 8
"""Runs with other numbers, after the two with the rarest."""

RAREST = (("the smallest drawn first", False), ("the largest drawn first", True))
"""Labels of the two runs with the rarest numbers, and which come first."""

SLOWEST = 20.0
"""How many times as long as at the case a run with the rarest may take; it may never end."""

BUDGET_S = 1.0
"""Seconds of this thread after which no more of them are made at a case."""


class RandomNumbers:
    """Looks whether random numbers decide what the original computes.

    Args:
        names: Names of the outputs.
        how: Tolerances.
        observation: Runs the original.
    """

    def __init__(self, names: Sequence[str], how: Verify, observation: Observation) -> None:
        self._names, self._how, self._observation = names, how, observation
        self._runs, self._draws = 0, ""

    def check(self, case: Case) -> None:
        """Runs the original with other numbers, if some that it draws at this case may reach an output.

        Raises:
            RandomModel: It computes something else then.
        """
        off = self.what_they_decide(case)
        if off:
            raise RandomModel(
                f"the model draws random numbers{self._draws}, and computes something else with others: case "
                f"{case.label!r}, {off}. A file draws its own, or none, so none can be proven. Draw them outside "
                f"and pass them to the model as an input, or export without a proof (verify=False, --no-verify)."
            )

    def what_they_decide(self, case: Case) -> str:
        """What differs beyond the tolerance with other numbers; nothing where nothing was seen to."""
        draws = case.reference.draws and _describe_draws(case, self._observation)
        if not draws:
            return ""
        self._draws, is_followed = draws
        runs = runs_drawn_otherwise(case, self._observation, RUNS if is_followed or not self._runs else 1)
        for other in runs:
            self._runs += 1
            off = _difference(case, other, self._names, self._how)
            if off:
                return off
        return ""

    @property
    def notes(self) -> list[str]:
        """What is known of numbers that may reach an output and decided nothing."""
        if not self._runs:
            return []
        runs = f"{self._runs} runs" if self._runs > 1 else "one run"
        return [f"the model draws random numbers{self._draws}; in {runs} others made no difference."]


def is_decided_by_draws(case: Case, observation: Observation) -> bool:
    """Whether random numbers have a part, however small, in what the original computes at a case."""
    return bool(case.reference.draws) and any(
        not _is_same(case.reference, other) for other in runs_drawn_otherwise(case, observation, RUNS)
    )


def runs_drawn_otherwise(case: Case, observation: Observation, most: int) -> Iterator[Reference]:
    """Runs of the original on a case's inputs, with the rarest random numbers and with others; none that it refuses."""
    start = time.thread_time()
    limit = max(1.0, SLOWEST * case.reference.seconds)
    for label, is_high in RAREST if "torch" in case.reference.draws else ():
        with suppress(ModelRefused, TooLong):  # of the smallest numbers a sampler may refuse every one
            rarest = _rarest(limit, is_high=is_high)
            yield observation.reference(f"{case.label}, {label}", case.inputs, within=rarest)
    for seed in range(most):
        with suppress(ModelRefused):
            yield observation.reference(f"{case.label}, drawn otherwise {seed}", case.inputs, within=seeded(seed))
        if time.thread_time() - start > BUDGET_S:
            return


@contextmanager
def _rarest(seconds: float, *, is_high: bool) -> Iterator[None]:
    with TimeLimit(seconds), RareDraws(is_high=is_high):
        yield


def _describe_draws(case: Case, observation: Observation) -> tuple[str, bool] | None:
    """Where the numbers are drawn, as a part of a sentence, and whether they are known to reach an output.

    None where no output is computed from them. Those of Python and numpy are followed nowhere.
    """
    trace, reach = DrawTrace(), [False]
    others = [name for name in case.reference.draws if name != "torch"]
    try:
        observation.run_within(trace, case.inputs, lambda outputs: reach.append(trace.reaches(outputs)))
    except ModelRefused:
        return "", False
    if trace.is_asked or any(reach):
        return f"{f' at {trace.place}' if trace.place else ''} that have a part in what it computes", True
    if trace.has_drawn and not others:
        return None
    return f" of {' and '.join(others)}, which nobody can follow" if others else "", False


def _is_same(one: Reference, other: Reference) -> bool:
    return len(one.outputs) == len(other.outputs) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(x, y, rtol=0.0, atol=0.0, equal_nan=True)
        for x, y in zip(one.outputs, other.outputs, strict=True)
    )


def _difference(case: Case, other: Reference, names: Sequence[str], how: Verify) -> str | None:
    """What differs between two runs beyond the tolerance."""
    if len(other.outputs) != len(case.reference.outputs):
        return f"{len(other.outputs)} outputs for {len(case.reference.outputs)}"
    for name, output, wanted in zip(names, other.outputs, case.reference.outputs, strict=False):
        row = compare(case.label, name, as_array(output), wanted, how.rtol, how.atol)
        if not row.ok:
            return f"output {row.output!r}: {row.detail}"
    return None
