"""The other sides of decisions on values, at other sizes: what the model asks of its sizes there, it asks nowhere else.

A file holds both branches of ``if x.max() > 5``, and the run without numbers took the example's. So it is made again on
the values that take the other one, and each question that is new is answered otherwise there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from torch_onnx_compat.check.frontier import Rank
from torch_onnx_compat.check.other_sides import Found, OtherSides
from torch_onnx_compat.check.sizes import SizeTrials
from torch_onnx_compat.check.verdicts import Verdict
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.questions.log import SymbolicRun
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.search import Sizes

RUNS = 3
"""Runs without numbers at most on the values of one side."""

UNASKED = 2
"""Sizes that are tried whatever the model asks: an exporter may have fixed a size in one branch."""


@dataclass
class Elsewhere:
    """Makes inputs at other sizes of those that were found for other sides.

    Args:
        search: Tells which side inputs take.
        runs: The original's symbolic runs.
        trials: The sizes that were tried, and the questions that were asked so far.
        check: Raises for a run that asks what the file cannot hold.
        is_left: Told of each question's verdict, of all so far, and of the inputs of the run that asked.
        seconds: What all of it may take of this thread.
    """

    search: OtherSides
    runs: SymbolicRuns
    trials: SizeTrials
    check: Callable[[SymbolicRun], None]
    is_left: Callable[[Verdict, Sequence[Verdict], Inputs], None]
    seconds: float
    _start: float = field(default_factory=time.thread_time)

    def of(self, found: Found) -> Iterator[Found]:
        """The same side at other sizes.

        Args:
            found: Inputs that take it.

        Raises:
            CompatError: The model decides there on what the file holds as a constant.
        """
        tried: set[tuple[int, ...]] = {self._key(found.inputs.sizes())}
        for there in itertools.chain(self._asked(found), self._unasked(found)):
            key = self._key(there.inputs.sizes())
            if key not in tried:
                tried.add(key)
                yield there

    def _asked(self, found: Found) -> Iterator[Found]:
        """Inputs at sizes that answer otherwise what is asked on this side only; the model is asked again there."""
        inputs = found.inputs.long_enough_to_trace()
        trials = self.trials.on(inputs)
        for _ in range(RUNS):
            if self._is_over():
                return
            run = self.runs.on(inputs)
            self.check(run)
            known = len(trials.verdicts)
            for trial in trials.for_questions(run.questions, inputs.sizes()):
                moved = None if self._is_over() else self._at(found, trial.sizes)
                if moved is None:
                    trials.refuse(trial.sizes)
                else:
                    trials.accept(trial.sizes, trial.question)
                    yield moved
            for verdict in trials.verdicts[known:]:
                self.is_left(verdict, trials.verdicts, inputs)
            there = trials.next_frontier(last=Rank.PYTHON)
            if there is None:
                return
            inputs = self.runs.observation.fit(inputs.at_sizes(there))

    def _unasked(self, found: Found) -> Iterator[Found]:
        """Inputs at sizes that every file is tried at, the most different ones."""
        own = found.inputs.sizes()
        others = sorted(self.trials.legal_sizes, key=lambda sizes: -sum(sizes[name] != own[name] for name in own))
        moved = (self._at(found, sizes) for sizes in others if sizes != own and not self._is_over())
        yield from itertools.islice(filter(None, moved), UNASKED)

    def _at(self, found: Found, sizes: Sizes) -> Found | None:
        label = f"{found.label}, {', '.join(f'{name}={size}' for name, size in sizes.items())}"
        return self.search.at_sizes(found, sizes, label)

    def _key(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(sizes.values())

    def _is_over(self) -> bool:
        return time.thread_time() - self._start > self.seconds
