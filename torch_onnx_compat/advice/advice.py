"""What forms of a file were measured, and which of them is recommended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

from torch_onnx_compat.advice.forms import DROP_IN, USUAL, Form
from torch_onnx_compat.files.bench import Bench

GAIN = 0.05
"""Share by which a form has to be better than the usual one to be worth a change."""


@dataclass(frozen=True)
class Trial:
    """One form of the file.

    Attributes:
        form: The form.
        opset: Its opset; 0 where no file was made.
        nodes: How many nodes it has.
        bytes: Its size with its weights.
        off_by: Of a narrower file, how far its outputs are off, relative to their size as the result's `precision` has
            it; NaN for others.
        timing: How long it takes in the engine; None where that is not installed.
        why: Why it is out of the question: what the export or the engine says.
    """

    form: Form
    opset: int = 0
    nodes: int = 0
    bytes: int = 0
    off_by: float = nan
    timing: Bench | None = None
    why: str = ""

    @property
    def cost(self) -> float:
        """What is to be small: processor milliseconds of a run; of what was only built, its megabytes; else NaN."""
        if self.timing is None or self.why:
            return nan
        return self.timing.engine_mb if isnan(self.timing.processor_ms) else self.timing.processor_ms

    @property
    def middle(self) -> tuple[float, float]:
        """Between which the middle half of the runs lies; the cost itself where nothing ran."""
        if self.timing is None or isnan(self.timing.processor_ms):
            return self.cost, self.cost
        return self.timing.quartiles_ms

    def is_better_than(self, other: Trial) -> bool:
        """Whether it costs clearly less, by more than its runs differ, or the other one is out of the question."""
        if self.why or other.why:
            return not self.why
        return self.cost < (1 - GAIN) * other.cost and self.middle[1] < other.middle[0]

    def price_beside(self, other: Trial) -> str:
        """What it costs beside another one, in words; empty where that is not known."""
        if isnan(self.cost) or isnan(other.cost):
            return ""
        if not self.is_better_than(other) and not other.is_better_than(self):
            return "about the same"
        return f"{self.cost / other.cost - 1:+.0%}"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        told = {key: value for key, value in vars(self).items() if key not in ("form", "timing")}
        timing = None if self.timing is None else self.timing.to_dict()
        return {"form": self.form.name, "kinds": list(self.form.kinds), **told, "timing": timing}


@dataclass(frozen=True)
class Advice:
    """The forms of a file for one engine, beside each other.

    Attributes:
        target: The engine.
        trials: The forms, the usual one first.
        best: The form that is recommended among those that take and give what the usual one does.
        options: The keywords of export_compat that make it, without the model.
        notes: What else there is to know.
    """

    target: str
    trials: tuple[Trial, ...]
    best: Trial
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        trials = [trial.to_dict() for trial in self.trials]
        return {"target": self.target, "trials": trials, "best": self.best.form.name, "notes": list(self.notes)}


def choose(trials: Sequence[Trial]) -> Trial:
    """The cheapest form among those that take and give what the usual one does; that one, if none is clearly better.

    Args:
        trials: The forms, the usual one first.
    """
    usual = trials[0]
    better = [t for t in trials if set(t.form.kinds) <= set(DROP_IN) and t.is_better_than(usual)]
    return min(better, key=lambda trial: (isnan(trial.cost), trial.cost), default=usual)


def winners(trials: Sequence[Trial]) -> list[Trial]:
    """For each kind of form that may stand in for the usual one, the best, where it is clearly better than that."""
    found = [choose([trials[0], *(t for t in trials if t.form.kinds == (kind,))]) for kind in DROP_IN]
    return [trial for trial in found if trial.form != USUAL]


def notes_on(trials: Sequence[Trial], best: Trial) -> list[str]:
    """What is told beside the table: the price of other axes and of suppression, and what decided."""
    usual, notes = trials[0], []
    costs = [trial.cost for trial in trials]
    if all(map(isnan, costs)):
        notes.append("nothing was run or built, so that only nodes and bytes are known; the usual form is recommended.")
    elif all(trial.timing is None or isnan(trial.timing.processor_ms) for trial in trials):
        notes.append("the engine builds files here and runs none: the size of what it built decides, not a time.")
    for trial in trials:
        if trial.form.kinds == ("axes",) and (price := trial.price_beside(usual)):
            notes.append(f"{trial.form.name}, whose file takes other inputs: {price}.")
    suppressing = [trial for trial in trials if trial.form.kinds == ("nms",)]
    working = [trial for trial in suppressing if not trial.why]
    if working:
        first = min(working, key=lambda trial: (isnan(trial.cost), trial.cost))
        price = first.price_beside(usual)
        notes.append(f"to suppress boxes in the file, take {first.form.name}{price and f': {price}'}.")
    elif suppressing:
        notes.append("no form suppresses boxes in the file here; leave that to the host.")
    if best.why:
        notes.append("no form works.")
    return notes
