"""What a model asks of its sizes, and its file does not: an error, unless cases answer it or the caller accepts it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torch_onnx_compat.backends.backend import ExportedGraph, FrozenNumber, TooLarge, frozen_error
from torch_onnx_compat.check.sizes import SizeTrials
from torch_onnx_compat.check.verdicts import CHOSEN, NO_MATTER, TOO_LARGE, Verdict
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.questions.log import SymbolicRun
from torch_onnx_compat.questions.question import Question

ROUNDS_TRIED = 3
"""Rounds before which cases ended a loop of the file, from which on any further one is like them."""

IN_FILE = "computed in the file"
"""How a statement is told of which numbers are computed and no decision is written."""


@dataclass(frozen=True)
class Unasked:
    """The checks of one file."""

    exported: ExportedGraph | None = None
    """What the exporter took for granted, and for fixed; None before there is a file."""
    baked_places: Collection[str] = ()
    """Places of questions that the caller lets the file answer as the example does."""
    decisions: Mapping[str, str] = field(default_factory=dict)
    """Decisions that the file takes, by place, and how each is written: masked, Loop ..."""
    at: Callable[[Mapping[str, int]], Inputs | None] = lambda sizes: None
    """The example at other sizes."""
    trace_sizes: Sequence[Mapping[str, int]] = ()
    """The sizes at which decisions were searched for."""
    is_no_matter: Callable[[Question, Inputs], bool] = lambda question, inputs: False
    """Whether the model computes the same on the inputs of a run, however a question is answered there."""

    def check_run(self, run: SymbolicRun) -> None:
        """Raises if the file may hold as a constant what the model decides: by values, or by what it looks up.

        Where the run has an obstacle, it ended before it could tell what a size may be found as.
        """
        unknown = self._not_baked(self._table_places) if run.obstacle else []
        if unknown:
            raise frozen_error(f"{unknown[0]}: a key of a size ({run.obstacle})", unknown[0], of_values=False)
        constant = self.exported.constant_places if self.exported is not None else frozenset()
        frozen = self._not_baked((run.value_places & constant).difference(self.decisions))
        ranks = self._not_baked(run.rank_places)
        if frozen or ranks:
            places = [f"{place}: a size that values decide" for place in frozen]
            places += [f"{place}: a number of dimensions that values decide, after a squeeze" for place in ranks]
            raise frozen_error("; ".join(places), (frozen + ranks)[0])

    def check_values(
        self,
        run: SymbolicRun,
        example: SymbolicRun,
        sizes: Mapping[str, int],
        reads_at: Callable[[Mapping[str, int]], Collection[str]],
    ) -> None:
        """Raises if the model asks for values at some sizes in a statement that asks for none at the example's.

        The exporter saw no such statement, unless the file takes the decision on the sizes that leads to it. Nor did it
        see what becomes of a list that has no items at the example's, unless the search for decisions met some.

        Args:
            run: What the original asks at these sizes.
            example: The same at the example's.
            sizes: Of the dynamic axes.
            reads_at: Gives the statements that ask for values at some sizes.
        """
        new = run.read_places - example.read_places
        places = self._not_baked(new.difference(self.decisions))
        at = ", ".join(f"{name}={size}" for name, size in sizes.items())
        if places:
            raise frozen_error(f"{places[0]}: the values that the model asks for at {at}", places[0])
        empty = self._not_baked(p for p in new & example.empty_places if self.decisions.get(p) == IN_FILE)
        if empty and not any(empty[0] in reads_at(other) for other in self.trace_sizes):
            raise FrozenNumber(
                f"{empty[0]} reads values at {at}, and none at the example's sizes: the file would hold a list without "
                f"items. Give an example with some, or accept it with allow_baked=[{empty[0]!r}].",
                self.at(sizes),
            )

    def _not_baked(self, places: Iterable[str]) -> list[str]:
        return sorted(place for place in places if place not in self.baked_places)

    def check_tried(self, verdict: Verdict, verdicts: Sequence[Verdict], asked_on: Inputs) -> None:
        """Raises for what the file may hold the example's answer to, and no case answers otherwise.

        Such are questions of the model's code, and numbers that an operator makes of sizes, where the other side is too
        large to try: that the file computes something there is no proof that it does so rightly. A key is one, too, for
        which no size was found, or no case was left. Whether a loop of the file has one more round is no such question,
        once cases had several rounds: one body computes each of them. Nor is a question whose answer changes nothing.

        Args:
            verdict: What became of a question.
            verdicts: The same of all questions so far.
            asked_on: The inputs of the run that asked it.
        """
        question = verdict.question
        is_key = not question.operator and question.place in self._table_places
        if is_key and verdict.outcome in ("one side", TOO_LARGE):
            raise frozen_error(f"{question}, which no case of the proof answers", question.place, of_values=False)
        if question.is_taken and verdict.outcome not in ("proven", "the model's own check"):
            self._check_taken(verdict)
        is_known = question in self.assumed or question.chooses_kernel or not question.is_asked
        if verdict.outcome not in (TOO_LARGE, NO_MATTER) or is_known or self._is_further_round(question, verdicts):
            return
        if not self.is_no_matter(question, asked_on):
            raise self._too_large(verdict)
        verdict.outcome = NO_MATTER

    def _check_taken(self, verdict: Verdict) -> None:
        """Raises for what Python makes of a size, if the file holds it.

        Where each number that there is was tried, the file was right at all of them.
        """
        question = verdict.question
        if verdict.is_each_tried or verdict.detail == CHOSEN or question.kind != "constant":
            return
        other = None if verdict.other is None else self.at(verdict.other)
        raise FrozenNumber(
            f"{question}. The file would hold the example's number. Compute what hangs on it with tensors, or accept "
            f"it with allow_baked=[{question.place!r}].",
            other,
        )

    def _is_further_round(self, question: Question, verdicts: Sequence[Verdict]) -> bool:
        """Whether a loop of the file asks this before a round, and cases ended it before several others."""
        if self.decisions.get(question.place) != "Loop" or question.kind != "condition":
            return False
        others = [v for v in verdicts if v.question.place == question.place and v.question.kind == "condition"]
        return sum(v.outcome == "both sides" for v in others) >= ROUNDS_TRIED

    def _too_large(self, verdict: Verdict) -> TooLarge:
        question, sizes = verdict.question, verdict.too_large or {}
        at = ", ".join(f"{name}={size}" for name, size in sizes.items())
        axis = min(map(str, question.expression.free_symbols))
        most = max(sizes.get(axis, 513) - 1, 1)
        return TooLarge(
            f"{question}. The file may hold the example's answer, and {at}, where the answer is another one, is too "
            f"large to try. Give a larger example, limit the axis, as ({axis!r}, 1, {most}) or "
            f"torch.export.Dim(..., max={most}) do, or accept it with allow_baked=[{question.place!r}]."
        )

    def check_left_alone(self, run: SymbolicRun, trials: SizeTrials) -> None:
        """Raises if a decision that was left alone may change the file.

        Every question there has to be answered, and the model has to be traced to the same graph at all sizes that were
        tried, those on the other sides included.
        """
        exported = self.exported
        if exported is None or exported.is_same_at is None:
            return
        answered = {v.question.place for v in trials.verdicts} - {
            v.question.place for v in trials.verdicts if not _is_answered(v)
        }
        for place in sorted(exported.left_alone):
            if run.obstacle or not trials.is_complete or place not in answered:
                raise frozen_error(f"{place}: a size, on which not every question has an answer", place)
        for sizes in trials.legal_sizes:
            inputs = self.at(sizes)
            if inputs is not None and not exported.is_same_at(inputs):
                at = ", ".join(f"{name}={size}" for name, size in sizes.items())
                place = min(exported.left_alone)
                raise frozen_error(f"{place}: a size, and the model does something else at {at}", place)

    def is_unmet(self, question: Question | None) -> bool:
        """Whether the model's code decides here, and the exporter did not: there, a size is no int for `isinstance`.

        What the file does instead may show in few values.
        """
        exported = self.exported
        met = () if exported is None else exported.constant_places | exported.left_alone
        if question is None or question.kind != "condition" or question.operator or question in self.assumed:
            return False
        return question.place not in {*self.decisions, *met}

    @property
    def assumed(self) -> tuple[Question, ...]:
        """What the exporter took for granted about sizes."""
        return self.exported.assumed if self.exported is not None else ()

    @property
    def _table_places(self) -> frozenset[str]:
        return self.exported.table_places if self.exported is not None else frozenset()


def _is_answered(verdict: Verdict) -> bool:
    """Whether a decision that asked this may be left alone. A condition has two sides; a number has any number."""
    has_two_sides = verdict.question.kind == "condition"
    return verdict.outcome in ("proven", "the model's own check", *(("both sides",) if has_two_sides else ()))
