"""Searches for values at which decisions come to what no case has come to, so that the file is judged on both sides.

The original runs in eager torch, and each decision tells its answer and, where it compares numbers, how far it is from
the other one (`control_flow/run/answers.py`). For each answer that is missing there follow: all values moved by that
distance; variations of the inputs; and bisection between inputs at which a comparison comes out otherwise. No gradients
are taken: the threads of torch's autograd end a process that was forked.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from torch_onnx_compat.check.perturb import RoundOtherwise
from torch_onnx_compat.check.variations import between, drawn_between, filled, led_back, moved, variations
from torch_onnx_compat.control_flow.run.answers import Answer, Margin, Site
from torch_onnx_compat.control_flow.values import Run, ValueDecisions, fresh_subject
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation

PART_OF_PROOF = 0.2
"""Largest part of the proof's time that the search takes: whoever exports waits for it, and most of what is found is
found in a few runs."""

FLOOR_S = 0.5
"""Seconds that it may always take: the proof of a small model takes hardly longer than a few hundred of its runs."""

RUNS = 600
"""Eager runs at most."""

RUNS_FOR_ROUNDS = 60
"""Runs after which nothing is searched but a number of rounds that a loop was not seen to have."""

MOST = 16
"""Inputs at most that become cases."""

SLOWEST = 20.0
"""Largest time of a run, in runs on the example: a loop may not end at other values."""

HALVINGS = 24
"""Halvings between two inputs at which a comparison comes out otherwise."""

MOST_DISTANT = 1 << 15
"""Largest step from the example's whole numbers: identifiers of words go so far."""

PARTS = (0.0, 2.0**-16, 2.0**-12, 2.0**-8, 2.0**-5, 2.0**-3, 0.5)
"""Parts of the way from the example, in turn, at which an input may still take the side that was found."""

ROUNDINGS = (1.0, 8.0)
"""Changes by each operation, in units of the last place, at which decisions must come to the same."""

REDRAWS = 3
"""Draws at other sizes, where the values themselves do not take the side."""

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

Side = bool | str
"""What a decision comes to: yes or no; of a loop, how many rounds it has."""


@dataclass(frozen=True)
class Found:
    """Inputs at which a decision comes to what no case came to before."""

    label: str
    inputs: Inputs
    site: Site
    side: Side
    others: tuple[tuple[Site, Side], ...] = ()
    """What else no case came to before."""


@dataclass
class _Nearest:
    """The inputs at which a comparison was nearest to its other answer, on either side of it."""

    below: tuple[float, Inputs] | None = None
    above: tuple[float, Inputs] | None = None


@dataclass
class OtherSides:
    """The search for one file.

    Args:
        decisions: Those that the file takes.
        observation: Runs the original.
        seconds: What the search may take of this thread: other work on the machine decides nothing.
        seed: Of what is drawn.
        is_judged: Whether the file has to be right at some values.
    """

    decisions: ValueDecisions
    observation: Observation
    seconds: float
    seed: int = 0
    is_judged: Callable[[Inputs], bool] = lambda inputs: True
    _seen: dict[Site, set[Side]] = field(default_factory=dict)
    _nearest: dict[Site, _Nearest] = field(default_factory=dict)
    _numbers: dict[float, None] = field(default_factory=dict)
    _tried: int = 0
    taken: list[Found] = field(default_factory=list)
    """For each answer that a case has come to, and the example has not, the first such case."""
    _was_refused: bool = False
    """Whether the model refused the inputs that were tried last."""

    def __post_init__(self) -> None:
        self._start = time.thread_time()
        self._subject = fresh_subject(self.observation)
        self._slowest = max(0.2, SLOWEST * self.observation.seconds)
        example = self.observation.reference("example", self.observation.prepared.inputs)
        self._is_finite = _are_finite(example.outputs)

    def take(self, cases: Sequence[Inputs]) -> None:
        """Notes what the decisions come to at the cases so far, of which the first is the example."""
        for inputs in cases:
            if self._is_over():
                return
            run = self._run(inputs)
            if run is None:
                continue
            new = self._new_sides(run)
            if new and inputs is not cases[0]:
                (site, side), *others = new
                self.taken.append(Found(_name(self._place(site), side), inputs, site, side, tuple(others)))
            self._accept(run)

    def search(self, bases: Sequence[Inputs]) -> Iterator[Found]:
        """Inputs at which a decision comes to what it has not come to, from the cases and from what is found.

        Args:
            bases: The inputs to begin with.
        """
        queue, found = list(bases), 0
        for base in queue:
            for inputs in self._from(base):
                is_enough = not self._wanted() and (not self._wishes() or self._tried > RUNS_FOR_ROUNDS)
                if self._is_over() or is_enough or found == MOST:
                    return
                new = self._try(inputs)
                if new is not None:
                    found += 1
                    queue.append(inputs)
                    yield new
                    nearer = self._bring_nearer(new)
                    if nearer is not None:
                        yield nearer

    def _bring_nearer(self, found: Found) -> Found | None:
        """Inputs that take the same side and are nearer to the example: beside large values, a small error hides.

        Each input goes back as far as the side is kept, one after the other.
        """
        example = self.observation.prepared.inputs
        inputs = found.inputs
        for position, (old, new) in enumerate(zip(example.tensors, inputs.tensors, strict=True)):
            if not new.is_floating_point() or old.shape != new.shape or not bool(new.isfinite().all()):
                continue
            for part in PARTS if not torch.equal(old, new) else ():
                nearer = led_back(inputs, example, position, part)
                if self._is_over():
                    return None
                if self._takes_all(self._run(nearer), found):
                    inputs = nearer
                    break
        if inputs is found.inputs:
            return None
        self._subject = fresh_subject(self.observation)
        run = self._run(inputs)
        is_kept = run is not None and self._takes_all(run, found) and self._is_kept_by_rounding(run)
        return replace(found, inputs=inputs) if is_kept and self.is_judged(inputs) else None

    def _is_kept_by_rounding(self, run: Run) -> bool:
        """Whether all decisions come to the same where operations round otherwise, as they do in the file.

        What is compared may be a sum whose terms cancel: then no number that is compared tells how near it is.
        """
        for step in ROUNDINGS:
            with RoundOtherwise(step, self.seed):
                other = self.decisions.run(fresh_subject(self.observation), run.inputs, self._slowest)
            if other is None or _sides(other) != _sides(run):
                return False
        return True

    def _takes_all(self, run: Run | None, found: Found) -> bool:
        if run is None or not self._takes(run, found):
            return False
        sides = _sides(run)
        return all(side in sides.get(site, ()) for site, side in found.others)

    def _takes(self, run: Run | None, found: Found) -> bool:
        return run is not None and found.side in _sides(run).get(found.site, ()) and self._is_judgeable(run)

    def at_sizes(self, found: Found, sizes: Mapping[str, int], label: str) -> Found | None:
        """Inputs at other sizes that take the same side.

        Args:
            found: Inputs that take it.
            sizes: Of the dynamic axes.
            label: Names the inputs.

        Returns:
            The values of `found`, shortened or repeated, or values drawn like them; None where neither take the side.
        """
        there = found.inputs.at_sizes(sizes)
        draws = (there.redrawn(self.seed + draw) for draw in range(REDRAWS))
        for inputs in map(self.observation.fit, itertools.chain((there,), draws)):
            run = self.decisions.run(fresh_subject(self.observation), inputs, self._slowest)
            if run is not None and self._takes(run, found) and self._is_kept_by_rounding(run):
                return replace(found, label=label, inputs=inputs)
        return None

    @property
    def untaken(self) -> list[str]:
        """One sentence for each decision of which the cases show one side only."""
        notes: dict[str, None] = {}
        for site, place in self.decisions.sites.items():
            answers = self._seen.get(site, set())
            if not answers:
                notes[f"{place}: no case comes to this decision; {_REMEDY}"] = None
            elif len(answers) == 1:
                word = "yes" if answers == {True} else "no"
                notes[f"{place}: every case has answered this decision alike ({word}); {_REMEDY}"] = None
        for site, place in self.decisions.loops.items():
            missing = self._lacks_rounds(site)
            if missing:
                notes[f"{place}: this loop has {missing} in every case; {_REMEDY}"] = None
        return list(notes)

    def _from(self, base: Inputs) -> Iterator[Inputs]:
        for site in self._wanted():
            yield from self._by_difference(site)
        yield from variations(base, list(self._numbers), self.seed)
        for position, tensor in enumerate(base.tensors):
            if tensor.numel() and tensor.dtype in _WHOLE:
                yield from self._within_range(base, position)
        for site in self._wanted():
            yield from self._by_difference(site)
            yield from self._between(site)

    # Guided

    def _by_difference(self, site: Site) -> Iterator[Inputs]:
        """All values moved by the difference of what is compared, and by its part of each value, as for a sum."""
        known = self._nearest.get(site, _Nearest())
        for slope, inputs in filter(None, (known.below, known.above)):
            if math.isinf(slope):  # no finite step reaches an infinity
                continue
            count = max(sum(tensor.numel() for tensor in inputs.tensors), 1)
            for part in (1.0, 1.5, 1.5 / count):
                step = -slope * part
                whole = math.copysign(math.ceil(abs(step)), step)
                yield moved(inputs, [_step_for(tensor, step, whole) for tensor in inputs.tensors])

    def _within_range(self, base: Inputs, position: int) -> Iterator[Inputs]:
        """Whole numbers from all that the model accepts, whose ends are searched by doubling and halving."""
        values = base.tensors[position]
        ends = []
        for sign, start in ((-1, int(values.min())), (1, int(values.max()))):
            accepted, step, refused = start, 1, False
            while not refused and step <= MOST_DISTANT:
                refused = yield from self._is_refused(base, position, accepted + sign * step)
                accepted, step = (accepted, step) if refused else (accepted + sign * step, 2 * step)
            while refused and step > 1:
                step //= 2
                accepted += 0 if (yield from self._is_refused(base, position, accepted + sign * step)) else sign * step
            ends.append(accepted)
        for draw in range(4):
            yield drawn_between(base, position, ends[0], ends[1], self.seed + draw)

    def _is_refused(self, base: Inputs, position: int, value: int) -> Generator[Inputs, None, bool]:
        """Whether the model refuses a whole number, or its element type does not hold it."""
        limits = torch.iinfo(base.tensors[position].dtype)
        if not limits.min <= value <= limits.max:
            return True
        yield filled(base, position, value)
        return self._was_refused

    def _between(self, site: Site) -> Iterator[Inputs]:
        """Inputs between two at which a comparison comes out otherwise."""
        for _ in range(HALVINGS):
            known = self._nearest.get(site)
            if known is None or known.below is None or known.above is None or site not in self._wanted():
                return
            yield between(known.below[1], known.above[1], 0.5)

    # Runs

    def _is_over(self) -> bool:
        return self._tried >= RUNS or time.thread_time() - self._start > self.seconds

    def _run(self, inputs: Inputs) -> Run | None:
        self._tried += 1
        return self.decisions.run(self._subject, inputs, self._slowest)

    def _try(self, inputs: Inputs) -> Found | None:
        """Inputs that are worth a case; None if they are not."""
        if not _are_finite(inputs.tensors) and _are_finite(self.observation.prepared.inputs.tensors):
            return None
        run = self._run(inputs)
        self._was_refused = run is None
        if run is None:
            return None
        self._learn(run)
        if not self._new_sides(run) or not self._is_judgeable(run):
            return None
        self._subject = fresh_subject(self.observation)  # what the runs before left in its buffers decides nothing
        run = self._run(inputs)
        new = self._new_sides(run) if run is not None else []
        if run is None or not new:
            return None
        if not self._is_kept_by_rounding(run) or not self.is_judged(inputs):
            return None
        self._accept(run)
        (site, side), *others = new
        return Found(_name(self._place(site), side), inputs, site, side, tuple(others))

    def _is_judgeable(self, run: Run) -> bool:
        """Whether no rounding may decide otherwise, and the results are numbers."""
        near = any(a.margin is not None and a.margin.is_near for answers in run.log.answers.values() for a in answers)
        return not near and (_are_finite(run.outputs) or not self._is_finite)

    def _accept(self, run: Run) -> None:
        for site, sides in _sides(run).items():
            self._seen.setdefault(site, set()).update(sides)
        self._learn(run)

    def _learn(self, run: Run) -> None:
        """Keeps the numbers that were compared, and the inputs that are nearest to an answer that is missing."""
        self._numbers.update(run.log.numbers)
        wanted = self._wanted()
        for site in wanted:
            margin = _margin_at(run, site)
            if margin is None:
                continue
            slope = float(margin.slope)
            known = self._nearest.setdefault(site, _Nearest())
            if slope < 0 and (known.below is None or slope > known.below[0]):
                known.below = slope, run.inputs
            elif slope > 0 and (known.above is None or slope < known.above[0]):
                known.above = slope, run.inputs

    def _wanted(self) -> dict[Site, None]:
        """The decisions of which a note would have to be made."""
        decisions = {site: None for site in self.decisions.sites if len(self._seen.get(site, ())) < 2}
        loops = {site: None for site in self.decisions.loops if self._lacks_rounds(site)}
        return decisions | loops

    def _wishes(self) -> bool:
        """Whether a loop did not have all numbers of rounds, some of which it may never have."""
        return any(len(self._seen.get(site, ())) <= len(_ROUNDS) for site in self.decisions.loops)

    def _lacks_rounds(self, site: Site) -> str:
        """What is missing of a loop that runs in the file: no round, or more than one."""
        rounds = self._seen.get(site, set())
        if self.decisions.loops[site] not in self.decisions.in_file or not rounds:
            return ""
        return _LEAST if "no" not in rounds else "" if rounds & {"a few", "many"} else _MOST

    def _new_sides(self, run: Run) -> list[tuple[Site, Side]]:
        return [
            (site, side)
            for site, sides in _sides(run).items()
            if site in self.decisions.sites or site in self.decisions.loops
            for side in sorted(sides - self._seen.get(site, set()), key=str)
        ]

    def _place(self, site: Site) -> str:
        return self.decisions.sites.get(site) or self.decisions.loops[site]


_LEAST, _MOST = "a round", "one round at most"

_REMEDY = "prove the other side too with samples=[...] that take it."

_ROUNDS = ((0, "no"), (1, "one"), (4, "a few"))
"""Largest number of rounds, and what it is called; more than the last are many."""


def _name(place: str, side: Side) -> str:
    return f"the other side of {place}" if isinstance(side, bool) else f"{side} round{'s' * (side != 'one')} of {place}"


def _sides(run: Run) -> dict[Site, set[Side]]:
    """What each decision of a run came to."""
    sides: dict[Site, set[Side]] = {site: {a.is_yes for a in found} for site, found in run.log.answers.items()}
    for site, counts in run.log.rounds().items():
        sides.setdefault(site, set()).update(
            next((name for most, name in _ROUNDS if count <= most), "many") for count in counts
        )
    return sides


def _margin_at(run: Run, site: Site) -> Margin | None:
    """How far a decision was from its other answer, at its first time in the run."""
    answers: list[Answer] = run.log.answers.get(site, [])
    return next((a.margin for a in answers if a.margin is not None), None)


def _step_for(tensor: Tensor, step: float, whole: float) -> float | None:
    if tensor.dtype is torch.bool:
        return None
    return step if tensor.is_floating_point() else whole


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors if t.is_floating_point())
