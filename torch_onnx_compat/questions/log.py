"""What a symbolic run asks, noted once for every statement of the model or operator that asks it."""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torch_onnx_compat.backends.caches import is_for_a_cache
from torch_onnx_compat.backends.checks import Place, reads_one_size
from torch_onnx_compat.backends.internals import expressions, symbolic
from torch_onnx_compat.backends.internals.canonical import is_zero
from torch_onnx_compat.backends.messages import is_message
from torch_onnx_compat.places import is_torchs_layer, is_user_file, short
from torch_onnx_compat.questions.calls import Calls
from torch_onnx_compat.questions.keys import Keys
from torch_onnx_compat.questions.numbers import numbers_near
from torch_onnx_compat.questions.question import Kind, Question
from torch_onnx_compat.questions.steps import Steps
from torch_onnx_compat.stack import frame_of_model, frames_of_model


@dataclass
class SymbolicRun:
    """What one run has asked."""

    questions: list[Question] = field(default_factory=list)
    obstacle: str = ""
    """Why the run ended before the model did; empty if it did not."""
    guesses: list[str] = field(default_factory=list)
    """Operators whose shapes torch cannot tell without values; they got the example's."""
    asks_values: bool = False
    """Whether something was asked of values: the run took the example's answer, and knows nothing of the other way."""
    read_places: set[str] = field(default_factory=set)
    """The model's statements whose Python gets values of tensors, as numbers or as an array."""
    empty_places: set[str] = field(default_factory=set)
    """The model's statements whose Python gets no items of a tensor, as of ``tolist()`` of an empty one."""
    value_places: set[str] = field(default_factory=set)
    """The model's statements that decide on a size that values decide, such as the number of what was selected."""
    rank_places: set[str] = field(default_factory=set)
    """The model's statements that ask for a number of dimensions that values decide: a squeeze drops what is one."""
    drops_sizes: bool = False
    """Whether a dimension is dropped where a size is 1."""
    is_answered_otherwise: bool = False
    """Whether Python itself asked the condition that was to get the other answer, and saw not what an operator did."""
    has_values: bool = True
    """Whether real tensors ran beside the fakes."""
    seconds: float = 0.0
    """Of its thread's processor time."""
    calls: Calls = field(default_factory=lambda: Calls(()))
    steps: Steps | None = None
    """What it computes, where that is kept."""

    @property
    def is_complete(self) -> bool:
        """Whether every question that the model can ask at these sizes is among the questions."""
        return not (self.obstacle or self.guesses or self.asks_values)

    def asks_no_more_than(self, other: SymbolicRun) -> bool:
        """Whether another run asked everything that this one did but for kernels, both to their ends."""
        ours, theirs = (
            {(q.kind, q.expression, q.place, q.operator) for q in run.questions if not q.chooses_kernel}
            for run in (self, other)
        )
        places = self.read_places | self.value_places | self.rank_places | self.empty_places
        known = other.read_places | other.value_places | other.rank_places | other.empty_places
        is_whole = not (self.obstacle or other.obstacle or self.guesses or other.guesses)
        return is_whole and ours <= theirs and places <= known

    @property
    def may_fix_sizes(self) -> bool:
        """Whether a size that varies may look fixed after a question: Python went one way, or C++ made a number."""
        return any(question.is_asked and not question.chooses_kernel for question in self.questions)


MOST = 500
"""Questions of one statement up to which the run goes on: ``size in range(100_000)`` asks one for every number."""


class TooManyQuestions(Exception):
    """A statement asks more than the run can follow."""


class Log:
    """Notes the questions, each once for every place."""

    def __init__(self, found: SymbolicRun, otherwise: Question | None = None) -> None:
        self.found = found
        self.symbols: Mapping[Any, Any] | None = None
        """The size of each symbol in terms of the axes' names; None while the fakes are only being made."""
        self.operator = ""
        self.pending: list[tuple[Kind, Any, Any]] = []
        """Kinds, expressions and answers of what the operator that runs has asked."""
        self.of_call: list[tuple[Kind, Any, Any]] = []
        """The same of the call of torch that runs, its operators' and its own."""
        self.call_reads = False
        """Whether an operator of the call of torch that runs makes numbers of values."""
        self.fixes_data = False
        """Whether C++ made a number of a size that values decide: the shapes after it may be fixed by mistake."""
        self.value_of: Callable[[Any], Any] = lambda expression: expression
        """An expression at the example's sizes."""
        self.heard: list[tuple[Any, Any]] | None = None
        """What the operator that runs asked so far, and the answers; None where nobody wants to know."""
        self.is_deaf = False
        """Whether what is asked now is nobody's question."""
        self.otherwise = otherwise
        """A condition that Python asks, and that gets the other answer."""
        self._seen: set[Any] = set()
        self._computed: set[Any] = set()
        self._count: Counter[str] = Counter()
        self._keys = Keys()

    def asked(self, expression: Any, answer: Any) -> Any:
        """Notes a condition, or a size that becomes a number; returns the answer."""
        if self.is_deaf:
            return answer
        if self.heard is not None:
            self.heard.append((expression, answer))
        is_condition = answer in (True, False) and not getattr(answer, "is_Integer", False)
        kind: Kind = "condition" if is_condition else "number"
        self.computed(expression, answer)
        self.of_call.append((kind, expression, answer))
        if self.operator:
            self.pending.append((kind, expression, answer))
        else:
            self._add(kind, expression, answer, symbolic.is_asked_by_python(frames_of_model()))
        is_other = self._is_of_other(expression)
        self.found.is_answered_otherwise |= is_other
        return ~answer if is_other else answer

    @contextmanager
    def hearing(self) -> Iterator[list[tuple[Any, Any]]]:
        """Gives what is asked while it is in force, and the answers."""
        before, self.heard = self.heard, []
        try:
            yield self.heard
        finally:
            self.heard = before

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """While in force, what is asked is answered, and not noted."""
        before, self.is_deaf = self.is_deaf, True
        try:
            yield
        finally:
            self.is_deaf = before

    def _is_of_other(self, expression: Any) -> bool:
        """Whether this is the condition that gets the other answer."""
        if self.otherwise is None or self.operator or self.symbols is None:
            return False
        return expression.xreplace(self.symbols) == self.otherwise.expression and _place() == self.otherwise.place

    def divides(self, divisor: Any) -> None:
        """Notes that Python divides by a number of sizes; where it is 0 that is an error, which may be caught."""
        if not self.operator and not expressions.data_symbols(divisor):
            condition = is_zero(divisor)
            self.asked(condition, self.value_of(condition))

    def computed(self, expression: Any, answer: Any) -> None:
        """Notes a number, or a condition on sizes, that is computed in floating point, or that int64 may not hold.

        A condition hides what rounding does to its parts: ``floor(0.7 * n) == 14`` holds nowhere near 90 in any way.
        """
        if expression in self._computed:
            return
        self._computed.add(expression)
        if expressions.data_symbols(expression):
            return
        if next(expressions.fast_growing_parts(expression), None) is not None:
            self._add("overflow", expression, answer, True)
        elif expressions.computes_floats(expression):
            self._add("rounding", expression, answer, True)
            for part in expressions.whole_parts(expression):
                if part != expression:
                    self.computed(part, self.value_of(part))

    def note_values(self) -> None:
        """Notes that an operator makes numbers of values, of which a call of torch may make tensors again."""
        self.found.asks_values = self.call_reads = True

    def note_read(self) -> None:
        """Notes that the model's Python gets what an operator made of values."""
        self.found.asks_values = True
        self.found.read_places.add(_place())

    def note_nothing(self) -> None:
        """Notes that the model's Python gets no items."""
        self.found.empty_places.add(_place())

    def note_pending(self) -> None:
        """Notes what the operator that runs has asked."""
        for question in self.pending:
            self._add(*question, by_python=False)

    def note_memory(self) -> None:
        """Notes that the model's Python sees what lies where in memory, which operators may have decided so far."""
        asked = self.found.questions
        asked[:] = dict.fromkeys(replace(one, operator="") if one.chooses_kernel else one for one in asked)

    def note_call(self) -> None:
        """Notes what a call of torch asked, as the model's Python may see which way the call went."""
        for question in self.of_call:
            self._add(*question, by_python=True)

    def note_answer(self) -> None:
        """Notes what a call of torch asked that the model's Python gets a yes or no of, as of ``x.is_contiguous()``."""
        frame = frame_of_model()
        if frame is not None and is_user_file(frame.f_code.co_filename):
            self.note_call()

    def ask_rank(self, *, reads_shape: bool) -> None:
        """Notes that the model asks for a number of dimensions that values decide.

        Args:
            reads_shape: Whether it reads the whole shape, which may be for one size only.
        """
        frame = frame_of_model()
        if frame is None or not is_user_file(frame.f_code.co_filename):
            return
        if not (reads_shape and reads_one_size(Place.of(frame))):
            self.found.rank_places.add(_place())

    def ask_ranks(self, sizes: Collection[Any]) -> None:
        """Notes that a number of dimensions is decided by which of several sizes are 1, each such number once.

        Operators and the model may do something else for each; a single size is asked about by the operator itself.
        """
        sizes = [size for size in sizes if not expressions.data_symbols(size)]
        for count in range(len(sizes) + 1) if len(sizes) > 1 else ():
            condition = expressions.larger_than_one(sizes, count)
            self._add("condition", condition, self.value_of(condition), True)

    def read(self, what: Any, number: Any) -> bool:
        """Notes that the text or the hash of a symbolic number is read; within an operator that is torch's own doing.

        Returns:
            Whether the number is looked up in a cache, which need not find it: the exporters' sizes find nothing
            either, and what the cached function asks is seen only if it runs.
        """
        if what == "hash" and is_for_a_cache():
            return True
        if not self.operator and not getattr(number.node.expr, "is_number", True):
            if what == "text" and _is_for_a_message():
                return False
            frame = frame_of_model()
            if what == "hash" and frame is not None and self._is_known_key(number.node.expr, frame):
                return False
            kind: Kind = "condition" if isinstance(number, torch.SymBool) else what
            self._add(kind, number.node.expr, symbolic.number_of(number), True)
        return False

    def _is_known_key(self, expression: Any, frame: types.FrameType) -> bool:
        return self._keys.note(expression, frame, _place(), numbers_near(frame))

    def note_keys(self) -> None:
        """Notes, once the model has run, which keys its sizes may be found as."""
        for condition, place in self._keys.conditions():
            self._add("condition", condition, self.value_of(condition), True, place)

    def _add(self, kind: Kind, expression: Any, answer: Any, by_python: bool, place: str = "") -> None:
        if self.symbols is None:
            return
        operator = "" if by_python else self.operator or "an operator made of others"
        place = "" if operator else place or _place()
        key = (kind, expression, place, operator)
        if key in self._seen:
            return
        self._seen.add(key)
        named = expression.xreplace(self.symbols)
        if not named.free_symbols:
            return
        if place:
            self._note_count(place)
        if expressions.data_symbols(expression):
            self.found.asks_values = True
            self.fixes_data |= kind == "number" and not by_python
            if not self.operator:
                self.found.value_places.add(place or _place())
            return
        numbers = () if kind in ("condition", "rounding", "overflow") else numbers_near(_user_frame())
        self.found.questions.append(Question(kind, named, answer, place or _place(), operator, numbers))

    def _note_count(self, place: str) -> None:
        self._count[place] += 1
        if self._count[place] > MOST:
            # The model may catch the error and go on: the run is not complete all the same.
            self.found.obstacle = f"{place} asks more than {MOST} questions about sizes"
            raise TooManyQuestions(self.found.obstacle)


def _is_for_a_message() -> bool:
    """Whether the code that makes a text, the model's or torch's, makes it for an error or a line of a log."""
    frame = frame_of_model()
    return frame is not None and is_message(Place.of(frame), may_be_tested=False)


def _user_frame() -> types.FrameType | None:
    """The innermost frame of the model's own code; of a model that torch has whole, of torch's module."""
    stack = list(frames_of_model())
    own = (frame for frame in stack if is_user_file(frame.f_code.co_filename))
    torchs = (frame for frame in stack if is_torchs_layer(frame.f_code.co_filename))
    return next(own, None) or next(torchs, None)


def _place() -> str:
    frame = _user_frame()
    return "unknown place" if frame is None else short(frame.f_code.co_filename, frame.f_lineno)
