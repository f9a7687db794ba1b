"""The sizes of the dynamic axes that a file is tried at.

A few for every axis: 1, the example's, a larger one. Then, for each question that the model or an operator asks of a
size, one on the other side of it: a file that holds the example's answer is wrong there.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_onnx_compat.check.frontier import Frontier, Rank
from torch_onnx_compat.check.verdicts import CHOSEN, NO_MATTER, TOO_LARGE, AxisProof, Verdict
from torch_onnx_compat.inputs.inputs import Inputs, is_within
from torch_onnx_compat.questions.cost import is_affordable_for
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.rounding import sides_of
from torch_onnx_compat.questions.search import MOST_NUMBERS, Sides, Sizes
from torch_onnx_compat.questions.taken_sizes import TakenSizes

OPERATOR_CASES = 8
"""Cases at most that are made for operators' questions: most of these choose a kernel, not a result."""

PYTHON_CASES = 60
"""Cases at most that are made for the questions of the model's Python."""


@dataclass(frozen=True)
class Trial:
    """Sizes to try, and why."""

    sizes: Sizes
    question: Question | None = None

    @property
    def label(self) -> str:
        """``height=32, width=48``."""
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())


DETOURS = 16
"""Sizes on the other side, the nearest ones, for which other axes are moved to keep the answers before."""

LADDER = (1, 2, 3, 5, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""Sizes that other axes are moved to."""

ROUNDED = 16
"""Sizes at most that are tried for the roundings of some axes at one place, however many runs compute them there."""

FEW_NUMBERS = 8
"""Numbers at most that a question of Python's may have for answers, if each of them is tried."""

IN_VAIN = 2
"""Questions of which a statement refuses the other side, whatever is tried there, after which it is not asked again."""

ITS_OWN = 2
"""Sizes that a statement refuses when it is asked for two equal ones, after which others are not tried."""

REFUSED = 6
"""Sizes at most that are tried for one number, or where other axes follow, of which the model may refuse all."""


@dataclass
class SizeTrials:
    """Chooses the sizes for the questions of one model; whoever tries them says which ones the model accepts.

    A question hides others: ``h == 224 and w == 224`` asks of the width only where the height is 224. So the model is
    asked again at the sizes on the other side of each question, until nothing new comes up.
    """

    inputs: Inputs
    takes_at_most: Callable[[float], bool]
    """Whether one eager run on the example takes no more than some seconds."""
    legal_sizes: list[Sizes] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    asks: Callable[[Sizes], Sequence[Question]] = lambda sizes: ()
    """What the model asks at some sizes, those included at which it fails."""
    axes_of_caller: Collection[str] = ()
    """Axes of which the caller said what sizes to try."""
    frontier: Frontier = field(default_factory=Frontier)
    """Sizes on the other side of a question, at which the model was not asked again yet."""
    is_complete: bool = True
    """Whether every question is known."""
    omissions: dict[str, Sizes] = field(default_factory=dict)
    """By question for a number: sizes that the code around it names, and that are too large to try."""
    known: TakenSizes | None = None
    """What earlier trials have shown of the sizes that the model takes."""

    def __post_init__(self) -> None:
        self._example = self.inputs.sizes()
        self._taken = self.known or TakenSizes(self._example)
        self._bounds = self.inputs.bounds()
        self._refused: set[tuple[int, ...]] = set()
        self._seen: set[object] = set()
        self._made = {True: 0, False: 0}
        self._rounded: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        self._numbers_tried: dict[Hashable, list[Sides]] = {}
        """By place, axes and number: the questions with which this number was tried there."""
        self._other_numbers: dict[object, list[Sizes]] = {}
        """The sizes at which the model is asked again for each question that has numbers for answers."""
        self._in_vain: Counter[str] = Counter()
        """By the model's statement that refuses: the questions for which nothing was found that it takes."""
        self._text_places: set[str] = set()
        """Statements that make a text of a size at sizes that the model takes."""
        self._refused_at = ""
        """The model's statement that refused the last sizes that were tried; empty if none did."""
        self._asked_at: set[tuple[int, ...]] = set()
        """The sizes of the symbolic runs, and those that are on the list for one."""
        self.legal_sizes.append(self._example)

    def on(self, inputs: Inputs) -> SizeTrials:
        """Trials on other values, for what was not asked so far.

        Args:
            inputs: Those values, at the sizes of a symbolic run.
        """
        trials = SizeTrials(inputs, self.takes_at_most, asks=self.asks, axes_of_caller=self.axes_of_caller)
        trials._seen, trials._rounded = self._seen, self._rounded
        return trials

    def accept(self, sizes: Sizes, question: Question | None = None) -> None:
        """Says that the model takes these sizes, which answer a question otherwise."""
        self.legal_sizes.append({**self._example, **sizes})
        self._taken.accept(sizes)
        if question is None or not question.is_asked:
            return  # the model goes the same way there
        full = {**self._example, **sizes}
        self.frontier.add(full, self._rank(question, full))
        self._asked_at.add(self._key(sizes))
        if question.is_number or question.kind == "number":
            self._keep_two((question.expression, question.place), full)

    def _rank(self, question: Question, sizes: Sizes) -> Rank:
        """Whose question has another answer at these sizes."""
        if not question.chooses_kernel:
            return Rank.PYTHON
        return Rank.OPERATOR_OF_ONE if self._is_degenerate(sizes) else Rank.OPERATOR

    def _keep_two(self, key: object, sizes: Sizes) -> None:
        """Asks again at the smallest and the largest size with another number: few rounds of a loop, and many."""
        known = sorted([*self._other_numbers.get(key, ()), sizes], key=lambda one: math.prod(one.values()))
        self._other_numbers[key] = [known[0], known[-1]] if len(known) > 2 else known
        if len(known) > 2 and self.frontier.discard(known[1]) and known[1] not in self.frontier:
            self._asked_at.discard(self._key(known[1]))  # nor is it known what is asked there

    def next_frontier(self, last: Rank = Rank.OPERATOR_OF_ONE) -> Sizes | None:
        """Sizes at which to ask again, taken off the list; None if there are none up to the last rank that counts."""
        return self.frontier.pop(last)

    def refuse(self, sizes: Sizes, place: str = "") -> None:
        """Says that the model refuses them, and in which statement."""
        self._refused.add(self._key(sizes))
        self._refused_at = place
        self._taken.refuse(sizes)

    def _is_refused(self, sizes: Sizes) -> bool:
        return self._key(sizes) in self._refused or self._taken.will_refuse(sizes)

    def for_questions(self, questions: Sequence[Question], asked_at: Sizes) -> Iterator[Trial]:
        """Sizes on the other side of each question for which none was accepted yet, until one is.

        Args:
            questions: What a run has asked.
            asked_at: The sizes of that run.
        """
        asked = [sides_of(question, asked_at, self._bounds) for question in questions]
        self._asked_at.add(self._key(asked_at))
        self._text_places |= {question.place for question in questions if question.kind == "text"}
        self._taken.accept(asked_at)
        for number in sorted(range(len(asked)), key=lambda i: (questions[i].chooses_kernel, i)):
            sides, question = asked[number], questions[number]
            key = _identity(question)
            if key in self._seen:
                continue
            if not sides.is_proven and self._is_fixed(sides, asked[:number]):
                self.verdicts.append(Verdict(question, "proven"))
                continue  # it stays unseen: on another way it may be asked where it has two answers
            self._seen.add(key)
            is_operator = question.chooses_kernel
            verdict = Verdict(question)
            self.verdicts.append(verdict)
            if sides.is_proven:
                verdict.outcome = "proven"
                continue
            before = len(self.legal_sizes)
            if self._made[is_operator] < (OPERATOR_CASES if is_operator else PYTHON_CASES):
                # An operator may have asked the same, for a call that Python gets the answer of.
                path = [one for one in asked[:number] if one.question.expression != question.expression]
                yield from self._trials(sides, verdict, () if is_operator else path)
            self._made[is_operator] += len(self.legal_sizes) - before
            self._judge(sides, verdict)

    def _is_fixed(self, sides: Sides, before: Sequence[Sides]) -> bool:
        """Whether a question is asked at one size of its axes only, since the model was asked about the others, too.

        Where a run without numbers has found a batch of 1, torch takes the batch for 1, and what is made of it later
        holds for no other.
        """
        sizes_asked = [dict(zip(self._example, key, strict=True)) for key in self._asked_at]
        fixed = {
            earlier.fixed_axis
            for earlier in before
            if earlier.fixed_axis and any(earlier.is_other(sizes) for sizes in sizes_asked)
        }
        return fixed.issuperset(sides.axes)

    def _trials(self, sides: Sides, verdict: Verdict, before: Sequence[Sides]) -> Iterator[Trial]:
        """Sizes on the other side of a question.

        Args:
            sides: The question.
            verdict: What becomes of it.
            before: What was asked before it: only where the answers to these stay is it asked at all. Where none of the
                sizes on the other side keeps them, one of them is the same question in other words.
        """
        others = list(sides.others())
        on_the_way = [sizes for sizes in others if _keeps(before, sizes)] or list(self._detours(sides, others, before))
        if others and not on_the_way:
            self._seen.discard(_identity(sides.question))  # a run that goes another way may come to its other side
        path = before if on_the_way else ()
        if not self._has_both(sides, path):
            yield from self._across(sides, verdict, path, sorted(on_the_way or others, key=self._likeliest))
        yield from self._further(sides, verdict, on_the_way or others, path)

    def _further(
        self, sides: Sides, verdict: Verdict, others: Sequence[Sizes], path: Sequence[Sides]
    ) -> Iterator[Trial]:
        """Sizes at which a file may be wrong that is right at one on the other side."""
        if not (sides.question.chooses_kernel and sides.question.are_unequal):  # few sizes have no farther ones
            yield from self._farther(sides, others)
        if sides.question.is_equality and not sides.question.operator:
            yield from self._uneven(sides, path)
        if sides.question.is_number:
            verdict.is_each_tried = yield from self._each(sides)
        yield from self._of_name(sides)

    def _each(self, sides: Sides) -> Generator[Trial, None, bool]:
        """Sizes for each value of a number, if it has few; returns whether each was tried that the model takes.

        ``n % 4`` may be the index of a tuple of which two items are alike.
        """
        most = MOST_NUMBERS if sides.question.kind == "constant" else FEW_NUMBERS
        if sides.each is None or len(sides.each) >= most:
            return False
        is_affordable = True
        for number, found in sides.each.items():
            for sizes in sorted(found, key=self._is_degenerate)[:REFUSED]:
                if self._has_number(sides, number):
                    break
                is_affordable = is_affordable and not self._obstacle(sizes, sides.question)
                if is_affordable and not self._is_refused(sizes):
                    yield Trial(sizes, sides.question)
        return is_affordable

    def _has_number(self, sides: Sides, number: Any) -> bool:
        """Whether the file was right where a number has this value, other than at axes of one cell."""
        return any(sides.answer(sizes) == number for sizes in self.legal_sizes if not self._is_degenerate(sizes))

    def _of_name(self, sides: Sides) -> Iterator[Trial]:
        """Sizes that some rounding, or a number in the code, makes special."""
        rounding = sides.question.kind, sides.question.place, tuple(sides.axes)
        for sizes in sides.named():
            if not sides.question.is_asked and self._rounded[rounding] == ROUNDED:
                break
            key, number = self._key(sizes), (rounding, sides.answer(sizes))
            is_new = not self._is_refused(sizes) and key not in map(self._key, self.legal_sizes)
            obstacle = self._obstacle(sizes, sides.question)
            if is_new and obstacle == TOO_LARGE and sides.question.kind == "number":
                self.omissions.setdefault(str(sides.question), sizes)
            if not is_new or obstacle or self._is_same_number(sides, sizes, number):
                continue
            self._rounded[rounding] += 1
            before = len(self.legal_sizes)
            yield Trial(sizes, sides.question)
            if len(self.legal_sizes) > before:
                self._numbers_tried.setdefault(number, []).append(sides)

    def _is_same_number(self, sides: Sides, sizes: Sizes, number: Hashable) -> bool:
        """Whether a file was right at this number before, for a question that says the same in other words.

        Each run without numbers writes a number as its own path has it: of whole windows, or of windows with padding.
        """
        return any(
            earlier.question.expression != sides.question.expression and earlier.answer(sizes) == sides.answer(sizes)
            for earlier in self._numbers_tried.get(number, ())
        )

    def _detours(self, sides: Sides, others: Sequence[Sizes], before: Sequence[Sides]) -> Iterator[Sizes]:
        """Sizes on the other side where axes that the question does not have keep the answers before it.

        ``min(height, width) < 9`` asks which one is smaller, and then of that one only: it has to grow together with
        the other one.
        """
        more = sorted({axis for earlier in before for axis in earlier.axes} - set(sides.axes))
        for sizes in others[:DETOURS] if more else ():
            near = [size + step for size in {sizes[axis] for axis in sides.axes} for step in (0, 1, -1, size)]
            moved = (
                {**sizes, **dict.fromkeys(names, size)}
                for size in (*near, *LADDER)
                for names in (*([name] for name in more), more)
                if all(is_within(self._bounds, name, size) for name in names)
            )
            yield from itertools.islice((found for found in moved if _keeps(before, found)), 1)

    def _across(
        self, sides: Sides, verdict: Verdict, path: Sequence[Sides], others: Sequence[Sizes]
    ) -> Iterator[Trial]:
        """Sizes on the other side of a question until one is accepted, or several are refused."""
        tried: list[Sizes] = []
        refused_there = 0
        for sizes in others:
            if self._is_out_of_reach(sizes, verdict):
                continue
            verdict.outcome = "the model's own check"
            if tried and self._taken.is_unlikely(sizes):
                continue
            self._refused_at = ""
            if not self._is_refused(sizes):
                yield Trial(sizes, sides.question)
            tried.append(sizes)
            if self._has_both(sides, path):
                return
            refused_there += sides.question.is_equality and self._refused_at == sides.question.place
            if len(tried) >= self._taken.patience or refused_there >= ITS_OWN:
                break
        if tried and not sides.question.chooses_kernel:
            yield from self._past_refusal(sides, verdict, tried[0])

    def _past_refusal(self, sides: Sides, verdict: Verdict, refused: Sizes) -> Iterator[Trial]:
        """Sizes on the other side, some of which the model refuses, that have what it asks for there."""
        place = self._refused_at
        if self._taken.will_refuse(refused) or self._in_vain[place] >= IN_VAIN:
            return
        asked, tried = self.asks(refused), 0
        is_open = any(one.kind == "text" and one.place not in self._text_places for one in asked)
        if is_open and sides.question.kind == "condition":
            verdict.outcome = ""  # the text may be why it refuses these sizes, and not all of this side
        for sizes in sides.past_refusal(refused, asked):
            if not self._is_refused(sizes) and not self._obstacle(sizes, sides.question):
                yield Trial(sizes, sides.question)
                tried += 1
            if tried == REFUSED or self._has_both(sides, ()):
                break
        self._in_vain[place] += not self._has_both(sides, ())

    def _farther(self, sides: Sides, others: Sequence[Sizes]) -> Iterator[Trial]:
        """Sizes on the other side twice as far as those that the model takes.

        Where two branches meet, the shape of one may fit that of the other by broadcasting, and nowhere else. So sizes
        come first at which what is compared differs by more: ``x[:8]`` is all of 8 rows, and of ``x[::n // 8]`` there
        are 8 for 16, for 32 and for 64. Where there is nothing at the example, the first item of what follows may be a
        0, which changes nothing.
        """
        near = next((sizes for sizes in others if self._key(sizes) in map(self._key, self.legal_sizes)), None)
        is_of_nothing = sides.question.kind == "number" and sides.question.answer == 0
        if near is None or not (sides.question.kind == "condition" or is_of_nothing):
            return
        far = (sizes for sizes in others if any(sizes[a] >= 2 * near[a] or 2 * sizes[a] <= near[a] for a in sides.axes))
        if is_of_nothing:
            far = (sizes for sizes in far if sides.answer(sizes) != sides.answer(near))
        for sizes in sorted(far, key=lambda sizes: sides.distance(sizes) <= sides.distance(near)):
            if not self._is_refused(sizes) and not self._obstacle(sizes, sides.question):
                if self._key(sizes) not in map(self._key, self.legal_sizes):
                    yield Trial(sizes, sides.question)
                return

    def _uneven(self, sides: Sides, path: Sequence[Sides]) -> Iterator[Trial]:
        """Sizes on the other side at which one axis is longer than another one, for each two of a question.

        A branch for one product of sizes may do at some of them what the other branch does: a table of 4 x 4 that is
        resized to 4 x 4 is itself, and resized to 2 x 8 it is not. Of 3 x 3 only 1 x 9 tells, where operators have
        other answers for an axis of one cell: they choose a kernel, and not the model's way.
        """
        path = [one for one in path if not one.question.chooses_kernel]
        done: set[str] = set()
        for sizes in sides.uneven() if len(sides.axes) > 1 else ():
            longest = max(sides.axes, key=lambda axis: sizes[axis])
            if longest in done or not _keeps(path, sizes) or self._obstacle(sizes, sides.question):
                continue
            if not self._is_refused(sizes) and self._key(sizes) not in map(self._key, self.legal_sizes):
                yield Trial(sizes, sides.question)
            if self._key(sizes) in map(self._key, self.legal_sizes):
                done.add(longest)

    def _is_out_of_reach(self, sizes: Sizes, verdict: Verdict) -> bool:
        obstacle = self._obstacle(sizes, verdict.question)
        verdict.detail = verdict.detail or obstacle
        if obstacle == TOO_LARGE:
            verdict.too_large = verdict.too_large or sizes
        return bool(obstacle)

    def _obstacle(self, sizes: Sizes, question: Question) -> str:
        """Why sizes are not tried; empty if they may be."""
        if any(name in self.axes_of_caller and sizes[name] != size for name, size in self._example.items()):
            return CHOSEN
        return "" if is_affordable_for(question, self.inputs, sizes, self.takes_at_most) else TOO_LARGE

    def _judge(self, sides: Sides, verdict: Verdict) -> None:
        others = [sizes for sizes in self.legal_sizes if sides.is_other(sizes)]
        if others:
            verdict.outcome, verdict.other = "both sides", others[0]
            telling = [sizes for sizes in others if not self._is_degenerate(sizes)] or others
            if sides.question.is_asked and self._asked_at.isdisjoint(map(self._key, telling)):
                # The file was right there before the question was known; what the model asks there is not known yet.
                self.accept(telling[0], sides.question)
        elif not verdict.outcome and verdict.too_large:
            verdict.outcome = TOO_LARGE
        elif verdict.detail:
            verdict.outcome = "not tried"
        elif not verdict.outcome:
            verdict.outcome = "one side"

    def _has_both(self, sides: Sides, path: Sequence[Sides]) -> bool:
        """Whether the other side was tried; axes of one cell do not settle what other sizes answer otherwise, too.

        Whether a broadcast is one is asked of one cell alone.
        """
        tried = [sizes for sizes in self.legal_sizes if sides.is_other(sizes) and _keeps(path, sizes)]
        if sides.question.chooses_kernel and tried:
            return not all(map(self._is_degenerate, tried)) or all(map(self._is_degenerate, sides.others()))
        return not all(map(self._is_degenerate, tried))

    def _is_degenerate(self, sizes: Sizes) -> bool:
        """Whether an axis is 1 long that is longer in the example: half of it is nothing, and a wrong half as good."""
        return any(sizes[name] == 1 < size for name, size in self._example.items() if name in sizes)

    def _likeliest(self, sizes: Sizes) -> tuple[bool, bool, bool, bool]:
        """Sorts sizes that the model may take, and that tell more, before others."""
        taken = self._taken
        return (self._is_refused(sizes), taken.is_unlikely(sizes), self._is_degenerate(sizes), taken.may_refuse(sizes))

    def _key(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple({**self._example, **sizes}[name] for name in self._example)

    def proofs(self) -> tuple[AxisProof, ...]:
        """What is known of each axis, once all trials were right."""
        return tuple(self._proof(name) for name in self._example)

    def _proof(self, name: str) -> AxisProof:
        tried = tuple(sorted({sizes[name] for sizes in self.legal_sizes}))
        least, most = self._bounds.get(name, (1, None))
        # An operator's condition chooses among kernels that compute the same; its numbers fix a shape.
        open_ones = [
            v.question
            for v in self.verdicts
            if name in {str(s) for s in v.question.expression.free_symbols}
            and v.outcome not in ("proven", "the model's own check", NO_MATTER)
            and not v.question.chooses_kernel
        ]
        proven = not open_ones and self.is_complete
        return AxisProof(name, least, most, tried, proven, tuple(dict.fromkeys(map(str, open_ones))))


def _identity(question: Question) -> object:
    return question.kind, question.expression, question.numbers, question.place


def _keeps(asked: Sequence[Sides], sizes: Sizes) -> bool:
    """Whether these questions have the answers at some sizes that they had where they were asked."""
    return not any(sides.question.kind == "condition" and sides.is_other(sizes) for sides in asked)
