"""Which sizes of the arguments of torch's functions are the same for every input that the file will see.

TorchScript knows no symbolic sizes, so a rewrite that runs inside its trace cannot tell a fixed size from a dynamic one
by itself. The original's symbolic run can. It took one way at each question, though: where the model asks some, as in
``k = 4 if height > 8 else 2``, or makes a number of a size, eager runs at other sizes have a say, too; and they alone
do where the run is not complete.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.trace_origins import is_of_weights
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.inputs.probing import distinct_sizes, first_accepted, other_sizes
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.questions.cost import is_affordable_for
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.search import Sides
from torch_onnx_compat.questions.taken_sizes import TakenSizes
from torch_onnx_compat.tracing import StaticSizes, below_function_modes, is_whole_trace, without_tracing
from torch_onnx_compat.watch import CallPlace, Watcher, shapes_of, tensors_of

Sizes = tuple[int | None, ...]
"""The sizes of a tensor's axes; None for those that vary."""


KnownCall = Sequence[Sizes]
"""The sizes of the tensors among the arguments of one call."""

Known = dict[int | CallPlace, KnownCall]
"""The same of each call by its number, and what all calls of one place have in common."""

Run = Sequence[tuple[CallPlace | None, KnownCall]]
"""The calls of one run."""


class SizeFacts:
    """Answers, when asked, which sizes of certain functions' arguments never vary.

    Args:
        runs: The original's symbolic runs.
        functions: The functions.
        inputs: The example as it is traced.
    """

    def __init__(self, runs: SymbolicRuns, functions: Sequence[Any], inputs: Inputs) -> None:
        self._runs, self._functions, self._inputs = runs, functions, inputs
        self._known: Known | None = None

    def of_call(self, number: int | None, args: Any, kwargs: Any, place: CallPlace | None = None) -> StaticSizes:
        """What `tracing.static_size` answers during the `number`-th call of the functions.

        Args:
            number: None for a call that stands for those of many rounds.
            args: The call's arguments.
            kwargs: The same.
            place: Where a call without a number is made.
        """

        def sizes_of(x: Tensor) -> Sizes | None:
            with below_function_modes():
                position = next((i for i, tensor in enumerate(tensors_of(args, kwargs)) if tensor is x), None)
                if position is None:
                    return None
                now = shapes_of(args, kwargs)
            known = self._sizes(number if place is None else place, position, now)
            is_counted = known is None and number is not None and is_whole_trace()
            return now[position] if is_counted and is_of_weights(x, len(self._inputs.tensors)) else known

        return sizes_of

    def _sizes(self, call: int | CallPlace | None, position: int, now: Sequence[tuple[int, ...]]) -> Sizes | None:
        # No trace has to hear of what is asked here: what a Function's forward records may use its arguments alone.
        with without_tracing():
            if not self._inputs.sizes():
                return now[position]
            if call is None:
                return None
            if self._known is None:
                # The original calls its own functions, not the entries'.
                with internals.without_function_modes(Watcher):
                    self._known = self._find()
        known = self._known.get(call)
        if known is None or len(now) != len(known) or not all(map(_is_instance, now, known)):
            return None  # another call than the original has at this place
        return known[position]

    def _find(self) -> Known:
        run = self._runs.at({})
        calls = [(call.place, call.known) for call in run.calls.of(self._functions)]
        if run.is_complete and not run.may_fix_sizes:
            return _by_number(calls) | _by_place(calls)
        runs = _eager_runs(self._runs.observation, self._functions, self._inputs, run.questions)
        compared = _compare(runs) | _by_place(*runs, least=2)
        if not run.is_complete:
            return compared
        known = _by_number(calls) | _by_place(calls)
        return {call: _merge(known[call], compared[call]) for call in known.keys() & compared.keys()}


WANTED = 4
"""Runs with another answer to a question. In fewer, sizes that differ may be equal by chance, as 9 % 7 and 16 % 7."""

TRIED = 2 * WANTED
"""Sizes with another answer at which the model is run for them; it may refuse some."""


class _EagerRuns:
    """Runs of the original at several sizes, with the calls that each makes."""

    def __init__(self, observation: Observation, functions: Sequence[Any], example: dict[str, int]) -> None:
        self._observation, self._functions = observation, functions
        self._taken = TakenSizes(example)
        self.sizes: list[dict[str, int]] = []
        self.calls: list[Run] = []

    def run(self, inputs: Inputs) -> bool | None:
        """True if the model accepts these sizes."""
        calls = self._observation.log_shapes(self._functions, inputs)
        if calls is None:
            self._taken.refuse(inputs.sizes())
            return None
        self._taken.accept(inputs.sizes())
        self.sizes.append(inputs.sizes())
        self.calls.append(calls)
        return True

    def run_on_other_side(self, question: Question, inputs: Inputs) -> None:
        """Makes runs in which a question has another answer than on the example, unless there are enough."""
        if question.chooses_kernel or not question.is_asked:
            return
        sides = Sides(question, inputs.sizes(), inputs.bounds())
        if sides.is_proven:
            return
        others = sides.others()
        if question.kind != "condition":  # what is made of a number often differs only where it is small
            others = iter(sorted(others, key=lambda sizes: sum(sizes.values())))
        refused = 0
        for sizes in sorted(itertools.islice(others, TRIED), key=self._taken.may_refuse):
            if sum(map(sides.is_other, self.sizes)) >= WANTED or refused >= self._taken.patience:
                return
            if is_affordable_for(question, inputs, sizes, self._observation.takes_at_most):
                refused += not first_accepted([self._observation.fit(inputs.at_sizes(sizes))], self.run)


def _eager_runs(
    observation: Observation, functions: Sequence[Any], inputs: Inputs, questions: Sequence[Question]
) -> Sequence[Run]:
    """Eager runs whose sizes differ: by little, by much, and so that Python decides otherwise.

    None where the model does not accept the example as it is traced.
    """
    runs = _EagerRuns(observation, functions, inputs.sizes())
    if not runs.run(inputs):
        return []
    for candidates in (other_sizes, distinct_sizes):
        first_accepted(candidates(inputs), runs.run)
    for question in questions:
        runs.run_on_other_side(question, inputs)
    return runs.calls


def _compare(runs: Sequence[Run]) -> Known:
    """What eager runs have in common, call by call.

    A run with another number of calls says nothing, as its calls are not those of the example's run. None are known
    where the model accepts no other size.
    """
    alike = [run for run in runs if len(run) == len(runs[0])]
    if len(alike) < 2:
        return {}
    return {number: _merge(*(known for _, known in calls)) for number, calls in enumerate(zip(*alike, strict=True))}


def _by_number(run: Run) -> Known:
    return {number: known for number, (_, known) in enumerate(run)}


def _by_place(*runs: Run, least: int = 1) -> Known:
    """What all calls of one place have in common, if so many runs make such calls."""
    found: dict[CallPlace, list[KnownCall]] = {}
    counts: Counter[CallPlace] = Counter()
    for run in runs:
        for place, known in run:
            if place is not None:
                found.setdefault(place, []).append(known)
        counts.update({place for place, _ in run if place is not None})
    return {place: _merge(*calls) for place, calls in found.items() if counts[place] >= least}


def _merge(one: KnownCall, *others: KnownCall) -> KnownCall:
    """What is known of one call by several runs."""
    if any([len(shape) for shape in one] != [len(shape) for shape in other] for other in others):
        return []
    return [
        tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True))
        for shapes in zip(one, *others, strict=True)
    ]


def _is_instance(shape: tuple[int, ...], known: Sizes) -> bool:
    """Whether a shape has the fixed sizes."""
    return len(shape) == len(known) and all(k in (None, size) for size, k in zip(shape, known, strict=True))
