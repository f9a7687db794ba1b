"""The inputs that a file is tried on: the example, other values, other sizes of dynamic axes, the caller's samples."""

from __future__ import annotations

import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_onnx_compat.backends.backend import ExportedGraph
from torch_onnx_compat.check.baked_places import BakedPlaces
from torch_onnx_compat.check.elsewhere import Elsewhere
from torch_onnx_compat.check.first_sizes import FirstSizes
from torch_onnx_compat.check.frontier import Rank, is_known_at_one
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.other_sides import FLOOR_S, PART_OF_PROOF, Found, OtherSides
from torch_onnx_compat.check.sizes import SizeTrials, Trial
from torch_onnx_compat.check.ties import one_size_only
from torch_onnx_compat.check.unasked import Unasked
from torch_onnx_compat.check.values import Refused, TakenValues
from torch_onnx_compat.check.variations import of_all_magnitudes
from torch_onnx_compat.check.verdicts import AxisProof
from torch_onnx_compat.control_flow.values import ValueDecisions
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.draws import draw_beside, is_one_number
from torch_onnx_compat.inputs.inputs import Bounds, Inputs, bind, is_within
from torch_onnx_compat.observe import ModelRefused, Observation, Reference
from torch_onnx_compat.questions.cost import is_affordable
from torch_onnx_compat.questions.log import SymbolicRun
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.run import SymbolicRuns

HEAVY_SECONDS = 0.3
"""Seconds of an eager forward above which a model counts as heavy; it is tried at fewer and smaller sizes."""

RUNS = 10
"""Further runs that ask the model on the other sides of its questions, whatever they take."""

QUICK_RUNS = 32
"""The same at most where they take less than QUICK_SECONDS together; none of them for an axis of 1."""

QUICK_SECONDS = 0.5
"""Of their thread's processor time."""

OPERATOR_SECONDS = 1.0
"""Seconds of such runs after which only the questions of the model's Python cause further ones."""

FAR_APART = (33, 65, 129)
"""By how much an axis is lengthened besides, where the model's questions about sizes are not known."""


OTHER_NUMBERS = (
    "The example has one whole number only, and these are others. If they mean nothing to the model, give an example "
    "with several, or verify=Verify(random=False)"
)


def _last_rank(runs: int, seconds: float) -> Rank | None:
    """Up to which rank of questions a further run is made; None if none is.

    Args:
        runs: The further runs that were made.
        seconds: What they took.
    """
    if runs < RUNS:
        return Rank.OPERATOR_OF_ONE if seconds < OPERATOR_SECONDS else Rank.PYTHON
    return Rank.OPERATOR if runs < QUICK_RUNS and seconds < QUICK_SECONDS else None


def _made_different(larger: Mapping[str, int], example: Mapping[str, int], bounds: Bounds) -> dict[str, int]:
    """The sizes again, none twice if possible: axes of one size may be one by mistake, one cell fits any other size.

    Each stays at a multiple of its distance from the example, as a model may want multiples of 32.
    """
    found: dict[str, int] = {}
    for name, size in larger.items():
        step = abs(size - example[name])
        others = (size + number * step for number in range(len(larger)))
        free = (other for other in others if other not in found.values() and is_within(bounds, name, other))
        found[name] = next(free, size)
    return found


@dataclass(frozen=True)
class Case:
    """Inputs, and the original model's results for them."""

    label: str
    inputs: Inputs
    reference: Reference
    question: Question | None = None
    """The question about a size that has another answer here than at the example."""
    is_searched: bool = False
    """Whether its values were searched for the other side of a decision."""
    remedy: str = ""
    """What to do if the original's outputs make no sense there."""
    lowest_first: bool | None = None
    """Whether the original took the lowest of equal values first, or the highest; None where it did as torch does."""

    @property
    def is_finite(self) -> bool:
        """Whether the original computes no NaN and no infinity."""
        return all(bool(o.isfinite().all()) for o in self.reference.outputs if o.is_floating_point())


class Cases:
    """The cases of one export, made one after the other so that the first failure ends the work.

    Args:
        observation: Runs the original.
        verify: Which cases to make.
        samples: Further inputs for forward: tuples of arguments, or dicts of keyword arguments.
        runs: The original's symbolic runs so far.
    """

    def __init__(
        self, observation: Observation, verify: Verify, samples: Sequence[Any] = (), runs: SymbolicRuns | None = None
    ) -> None:
        self.observation = observation
        self._verify = verify
        self._samples = samples
        self._inputs = observation.prepared.inputs
        self._bounds = self._inputs.bounds()
        self.notes: list[str] = []
        self.so_far: list[Case] = []
        """The cases so far."""
        self.is_strict = False
        """Whether the file has to be right at extreme values, too."""
        self._further: Mapping[str, int] = {}
        self._exported: ExportedGraph | None = None
        self.baked_places: Collection[str] = ()
        self.baked = BakedPlaces()
        self._unasked = Unasked()
        self._on_values: ValueDecisions | None = None
        self._is_searched = False
        self._values = TakenValues(observation, self._drawn)
        self._refused_at = ""
        """The model's statement that refused the last sizes."""
        self._other_sides: dict[str, Inputs] = {}
        """Values found for other sides of decisions, by label; every file that follows is tried on them too."""
        self._runs = SymbolicRuns(observation) if runs is None else runs
        self._trials: SizeTrials | None = None

    def begin(
        self,
        further: Mapping[str, int],
        exported: ExportedGraph,
        baked_places: Collection[str] = (),
        decisions: Mapping[str, str] | None = None,
        on_values: ValueDecisions | None = None,
        trace_sizes: Sequence[Mapping[str, int]] = (),
        *,
        is_strict: bool = False,
    ) -> None:
        """Begins with another file.

        Args:
            further: Sizes of dynamic axes to try in addition.
            exported: What the exporter took for granted, and for fixed.
            baked_places: Places of questions that the caller lets the file answer as the example does.
            decisions: Decisions that the file takes, by place, and how each is written.
            on_values: Those among them that depend on values.
            trace_sizes: The sizes at which decisions were searched for.
            is_strict: Whether the file has to be right at extreme values, too.
        """
        self._further, self._exported = further, exported
        self.baked_places, self.is_strict = baked_places, is_strict
        at, is_no_matter = self.observation.at_sizes, self._runs.is_no_matter
        self.baked = BakedPlaces(baked_places, self.observation, self._plain_inputs)
        self._unasked = Unasked(exported, baked_places, decisions or {}, at, trace_sizes, is_no_matter)
        self._on_values, self._is_searched = on_values, False
        self.notes.clear()

    def __iter__(self) -> Iterator[Case]:
        self.so_far.clear()
        self._begun = time.thread_time()
        for case in self._all():
            self.so_far.append(case)
            yield case

    def _all(self) -> Iterator[Case]:
        example = self._case("example", self._inputs)
        yield example
        if self._exported is not None and self._exported.has_selections:
            self._ask({})
        for index, sample in enumerate(self._samples):
            yield self._case(f"sample {index}", self._sample(index, sample))
        number = 0
        for case in self._at_other_sizes():
            number += 1
            yield case
        redraws = self._verify.values if self._verify.random else 0
        for seed in range(redraws - (1 if number else 0)):
            # Cases at other sizes have other values already.
            yield from self._try_case(f"other values {seed + 1}", self._inputs)
        if self._verify.random:
            yield from self._beside_constants()
        yield from self._on_other_sides()

    def _beside_constants(self) -> Iterator[Case]:
        """Cases with other whole numbers and booleans than an example that has one: of ones as a mask, or as token ids.

        All of them at once, if the original takes that, else one input after the other. Where it computes NaN or
        infinities, as the mean of nothing, and none at the example, the numbers make no sense.
        """
        constant = [i for i, t in enumerate(self._inputs.tensors) if is_one_number(t)]
        drawn = self._drawn("other numbers", self._inputs)
        together = list(self._first_sensible("other numbers", drawn, constant)) if len(constant) > 1 else []
        yield from together
        for index in () if together else constant:
            yield from self._first_sensible(f"other numbers in {self._inputs.names[index]!r}", drawn, [index])

    def _first_sensible(self, label: str, inputs: Inputs, places: Collection[int]) -> Iterator[Case]:
        for has_zero in (True, False):
            tensors = (
                draw_beside(self._inputs.tensors[i], self._verify.seed + i, has_zero=has_zero)
                if i in places
                else tensor
                for i, tensor in enumerate(inputs.tensors)
            )
            found = replace(inputs, tensors=tuple(tensors))
            name = label if has_zero else f"{label}, none of them 0"
            for case in self._searched(name, found):
                if case.is_finite or not self.so_far[0].is_finite:
                    yield replace(case, is_searched=False, remedy=OTHER_NUMBERS)
                    return

    def _on_other_sides(self) -> Iterator[Case]:
        """Cases at values at which a decision comes to what it came to in no other case."""
        for label, inputs in self._other_sides.items():
            yield from self._searched(label, inputs)
        if not self._on_values or self._is_searched:
            return
        self._is_searched = True
        seconds = max(FLOOR_S, PART_OF_PROOF * (time.thread_time() - self._begun))
        search = OtherSides(self._on_values, self.observation, seconds, self._verify.seed, self.baked.are_kept)
        search.take(self.inputs_so_far)
        is_wanted = self._verify.random  # where only the caller's values make sense, none are made up
        sides = list(search.search(self.inputs_so_far)) if is_wanted else []
        asked = [*search.taken, *sides] if is_wanted else []
        for found in [*sides, *self._at_sizes_of(asked, search, seconds)]:
            number = sum(label.startswith(found.label) for label in self._other_sides)
            label = f"{found.label} ({number + 1})" if number else found.label
            self._other_sides[label] = found.inputs
        self.notes += search.untaken
        for label in list(self._other_sides):
            if label not in {case.label for case in self.so_far}:
                yield from self._searched(label, self._other_sides[label])

    def excuse(self, case: Case, detail: str) -> str:
        """What is to be said where the file differs by the caller's consent; nothing at values that nobody made up."""
        is_made_up = case.is_searched or case.remedy
        return self.baked.excuse(case.label, case.inputs, detail) if is_made_up else ""

    def _at_sizes_of(self, sides: Sequence[Found], search: OtherSides, seconds: float) -> Iterator[Found]:
        """The same sides at other sizes."""
        if self._trials is not None:
            there = Elsewhere(
                search, self._runs, self._trials, self._unasked.check_run, self._unasked.check_tried, seconds
            )
            for found in sides:
                yield from there.of(found)

    def _searched(self, label: str, inputs: Inputs) -> Iterator[Case]:
        try:
            yield Case(label, inputs, self.observation.reference(label, inputs), is_searched=True)
        except ModelRefused:  # a model that remembers its calls
            return

    @property
    def ordinary(self) -> list[Case]:
        """The cases so far but for those whose values were searched, which may be large."""
        return [case for case in self.so_far if not case.is_searched]

    def _plain_inputs(self) -> list[Inputs]:
        """The inputs of those at which the file is right whatever the caller accepts."""
        return [case.inputs for case in self.ordinary if not case.remedy]

    @property
    def inputs_so_far(self) -> list[Inputs]:
        """The inputs of the cases so far."""
        return [case.inputs for case in self.so_far]

    def samples(self) -> list[Inputs]:
        """The caller's samples, as inputs of the model."""
        return [self._sample(index, sample) for index, sample in enumerate(self._samples)]

    @property
    def proofs(self) -> tuple[AxisProof, ...]:
        """What is known of each dynamic axis, after the last case."""
        return () if self._trials is None else self._trials.proofs()

    def _drawn(self, label: str, inputs: Inputs) -> Inputs:
        """Random values, the same for each case of a label: what the original computes there is kept by the label."""
        if not self._verify.random:
            return inputs
        return inputs.redrawn((self._verify.seed + zlib.crc32(label.encode())) % 2**31)

    def _case(self, label: str, inputs: Inputs) -> Case:
        try:
            return Case(label, inputs, self.observation.reference(label, inputs))
        except ModelRefused as refusal:
            raise CompatError(f"the model itself fails on the {label} input: {refusal}") from refusal

    def _try_case(self, label: str, inputs: Inputs, *, may_fit: bool = True) -> Iterator[Case]:
        """A case on random values, else on the given values; none where the model refuses both.

        Args:
            label: Names the case.
            inputs: The given values.
            may_fit: Whether whole numbers may be made to fit the sizes, where the model refuses those of the example.
        """
        found = self._values.at(label, inputs, may_fit=may_fit)
        if isinstance(found, Refused):
            self._refused_at = found.place
            self.notes.append(f"not tried at {label}: the model itself refuses: {found.reason}")
        else:
            yield Case(label, *found)

    # Sizes

    def _at_other_sizes(self) -> Iterator[Case]:
        """Cases at other sizes of the dynamic axes: a few for each axis, then those that answer questions otherwise."""
        if not self._inputs.sizes():
            return
        self._trials = None
        self._first_sizes = FirstSizes(self.observation, self._try_together, self.notes)
        tried: list[Case] = []
        is_heavy = not self.observation.takes_at_most(HEAVY_SECONDS)
        for case in self._sizes(is_heavy):
            tried.append(case)
            yield case
        if self._further:
            yield from self._quietly_at(self._further)
        run = self._ask({})
        if run.obstacle:
            self.notes.append(
                f"what the model asks of its sizes is not all known, as torch cannot run it without numbers "
                f"({run.obstacle}); it was tried at sizes far apart instead."
            )
            for case in self._far_apart(is_heavy):
                tried.append(case)
                yield case
        self._trials = trials = SizeTrials(
            self._inputs,
            self.observation.takes_at_most,
            asks=lambda sizes: self._runs.at(sizes).questions,
            axes_of_caller=tuple(self._verify.sizes),
            known=self._first_sizes.taken,
        )
        for case in tried:
            trials.accept(case.inputs.sizes())
        yield from self._explore(run, trials)

    def _explore(self, run: SymbolicRun, trials: SizeTrials) -> Iterator[Case]:
        """The cases on the other sides of all questions, those included that are asked there only."""
        yield from self._answer(
            [*run.questions, *self._unasked.assumed], self.observation.trace_inputs().sizes(), trials
        )
        runs = [run]
        seconds = 0.0
        while (last := _last_rank(len(runs) - 1, seconds)) is not None:
            asked_at = trials.next_frontier(last)
            if asked_at is None:
                break
            if is_known_at_one(run, self.observation.trace_inputs().sizes(), asked_at, self._bounds):
                continue
            runs.append(self._ask(asked_at))
            seconds += runs[-1].seconds
            yield from self._answer(runs[-1].questions, asked_at, trials)
        is_left_out = any(question.place in self.baked_places for run in runs for question in run.questions)
        trials.is_complete = not (is_left_out or trials.frontier) and all(run.is_complete for run in runs)
        for question, sizes in trials.omissions.items():
            label = Trial(sizes).label
            self.notes.append(f"{question}; not tried at {label}, a number that its code names: too large.")
        self._unasked.check_left_alone(run, trials)

    def _ask(self, sizes: dict[str, int]) -> SymbolicRun:
        """What the original asks of its sizes when it has these."""
        run = self._runs.at(sizes)
        self._unasked.check_run(run)
        self._unasked.check_values(run, self._runs.at({}), sizes, lambda other: self._runs.at(other).read_places)
        return run

    def _answer(self, questions: Sequence[Question], asked_at: dict[str, int], trials: SizeTrials) -> Iterator[Case]:
        """The cases on the other sides of questions."""
        for trial in trials.for_questions([q for q in questions if q.place not in self.baked_places], asked_at):
            cases = list(self._try_question(trial))
            yield from cases
            if cases:
                trials.accept(trial.sizes, trial.question)
            else:
                trials.refuse(trial.sizes, self._refused_at)
        asked_on = self._runs.inputs_at(asked_at)
        for verdict in trials.verdicts:
            if verdict.question in questions:
                self._unasked.check_tried(verdict, trials.verdicts, asked_on)

    def _try_question(self, trial: Trial) -> Iterator[Case]:
        """The cases on the other side of a question; none where the model refuses these sizes."""
        before = len(self.notes)
        for case in self._try_case(trial.label, self._inputs.at_sizes(trial.sizes)):
            yield replace(case, question=trial.question)
            if self._verify.random and self._unasked.is_unmet(trial.question):
                other = of_all_magnitudes(case.inputs, self._verify.seed)
                found = self._searched(f"{trial.label}, all magnitudes", other)
                yield from (replace(one, question=trial.question) for one in found)
        del self.notes[before:]  # where the model refuses one side of a question, the question is its own check

    def _far_apart(self, is_heavy: bool) -> Iterator[Case]:
        """Cases at sizes far from the example's, one axis at a time and all together."""
        example = self._inputs.sizes()
        for step in FAR_APART[:1] if is_heavy else FAR_APART:
            free = [name for name in example if name not in self._verify.sizes]
            names = [name for name in free if is_within(self._bounds, name, example[name] + step)]
            for some in [[name] for name in names] + ([names] if len(names) > 1 else []):
                sizes = {name: example[name] + step for name in some}
                if not is_affordable(self._inputs, {**example, **sizes}, self.observation.takes_at_most):
                    continue
                yield from self._quietly_at(sizes)

    def _quietly_at(self, sizes: Mapping[str, int]) -> Iterator[Case]:
        """A case at sizes that nobody asked for: that the model refuses them is nothing to say."""
        before = len(self.notes)
        yield from self._try_together(sizes)
        del self.notes[before:]

    def _sizes(self, heavy: bool) -> Iterator[Case]:
        example = self._inputs.sizes()
        larger: dict[str, int] = {}
        for name in example:
            tried = self._verify.sizes.get(name)
            if tried is not None:
                for size in tried:
                    yield from self._case_at({name: size})
                continue
            yield from self._first_sizes.smallest(name)
            found = list(self._first_sizes.larger(name, heavy, larger))
            yield from found
            if not found:
                self._check_fixed_axis(name)
        if len(larger) > 1 and not heavy:
            before = len(self.notes)
            cases = list(self._try_together(_made_different(larger, example, self._bounds))) or list(
                self._try_together(larger)
            )
            if cases:
                del self.notes[before:]
            yield from cases
        ones = {name: 1 for name in example if is_within(self._bounds, name, 1) and name not in self._verify.sizes}
        if len(ones) > 1:
            yield from self._quietly_at(ones)

    def _try_together(self, sizes: Mapping[str, int], *, may_fit: bool = True) -> Iterator[Case]:
        yield from self._try_case(Trial(dict(sizes)).label, self._inputs.at_sizes(sizes), may_fit=may_fit)

    def _case_at(self, sizes: Mapping[str, int]) -> Iterator[Case]:
        label = ", ".join(f"{n}={s}" for n, s in sizes.items())
        yield self._case(label, self.observation.fit(self._drawn(label, self._inputs.at_sizes(sizes))))

    def _check_fixed_axis(self, name: str) -> None:
        """Raises an error for an axis that is declared dynamic, but that the original accepts at one size only.

        Where a sample has another size of it, values of the inputs decide which size is the right one.
        """
        least, most = self._bounds.get(name, (1, None))
        size = self._inputs.sizes()[name]
        if least == most or any(sample.sizes().get(name) != size for sample in self.samples()):
            return
        if any(note.startswith(f"not tried at {name}=") for note in self.notes):
            raise one_size_only(self.observation, name, self.notes[-1].partition("refuses: ")[2])

    # Samples

    def _sample(self, index: int, sample: Any) -> Inputs:
        model = self.observation.prepared.model
        args, kwargs = ((), sample) if isinstance(sample, Mapping) else (sample, None)
        bound = bind(model, args, kwargs, None).real()
        if [tree.qualified_name(p) for p in bound.paths] != [tree.qualified_name(p) for p in self._inputs.paths]:
            raise CompatError(
                f"samples[{index}] holds the tensors {[tree.qualified_name(p) for p in bound.paths]} but the example "
                f"{[tree.qualified_name(p) for p in self._inputs.paths]}; give every sample the example's structure."
            )
        return replace(self._inputs, tensors=bound.tensors)
