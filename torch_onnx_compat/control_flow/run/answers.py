"""What the decisions of one eager run come to: their answers, how far each is from the other one, rounds of loops.

In a plain run, the functions that rewritten code calls take the model's decisions as Python does, and tell the log that
is in force. In a search for decisions, they note which of them depend on values.
"""

from __future__ import annotations

import math
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.control_flow.run.session import Session
from torch_onnx_compat.places import short
from torch_onnx_compat.stack import frames
from torch_onnx_compat.tracing import below_function_modes

Site = tuple[types.CodeType, int, int]
"""A decision: the code that takes it, its instruction there, and its number among the operands of ``and``, ``or``."""

ROUNDS = -1
"""In place of an operand's number: how many rounds a loop has."""

LARGEST = 1 << 22
"""Elements up to which it is worked out how far a comparison's results are from the others."""


@dataclass(frozen=True)
class Margin:
    """How far a condition is from its other answer."""

    value: Tensor | float
    """Positive where the answer is yes, negative where it is no; of an equality 0 where it is yes.

    Infinite where only one side is infinite, or one is NaN.
    """
    slope: Tensor | float
    """The same, or of an equality the difference of its two sides: it changes its sign where the answer changes."""
    scale: float
    """The magnitude of what is compared."""

    @property
    def is_near(self) -> bool:
        """Whether a rounding may change the answer."""
        distance = abs(float(self.value))
        if not 0 < distance < math.inf:
            return False
        return distance <= NEAR * self.scale and not _is_whole(distance, self.scale)


NEAR = 1e-4
"""Part of the compared values: conditions that are nearer to the other answer are left to chance, as rounding is."""


@dataclass(frozen=True)
class Answer:
    """What a decision came to."""

    is_yes: bool
    margin: Margin | None


class OutOfTime(BaseException):
    """Ends a run that takes too long; a model that catches errors must not catch it."""


class AnswerLog(TorchFunctionMode):
    """Records the answers of a run; in force within `recording`.

    Args:
        seconds: What the run may take of this thread.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        super().__init__()
        self.answers: dict[Site, list[Answer]] = {}
        self.numbers: dict[float, None] = {}
        """The numbers that something was compared with, as keys."""
        self._end = time.thread_time() + seconds
        self._rounds: dict[tuple[Site, int], int] = {}
        self._loops: list[object] = []
        self._margins: dict[int, tuple[Tensor, Margin]] = {}
        self._last: tuple[Any, Margin | None] = (None, None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While active, decisions of rewritten code are recorded here."""
        token = _log.set(self)
        try:
            with self:
                yield
        finally:
            _log.reset(token)

    def rounds(self) -> dict[Site, set[int]]:
        """How many rounds each loop had."""
        found: dict[Site, set[int]] = {}
        for (site, _), count in self._rounds.items():
            found.setdefault(site, set()).add(count)
        return found

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.thread_time() > self._end:
            raise OutOfTime
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            rule = _RULES.get(getattr(func, "__name__", ""))
            if rule is not None and result.numel() <= LARGEST:
                self._follow(rule, result, args, kwargs or {})
        return result

    def _follow(self, rule: Callable[..., Margin | None], result: Tensor, args: Any, kwargs: Any) -> None:
        with below_function_modes():
            try:
                margin = rule(self, *args, **kwargs)
            except (TypeError, RuntimeError, IndexError):  # a form of the call that the rule does not cover
                return
        if margin is not None:
            self._margins[id(result)] = result, margin

    def margin_of(self, value: Any) -> Margin | None:
        """How far a condition is from its other answer, where that is known."""
        if isinstance(value, Tensor):
            known = self._margins.get(id(value))
            if known is not None:
                return known[1]
            if value.dtype is torch.bool or value.is_complex():
                return None
            return _compare(self, "!=", value, 0)
        return self._last[1] if self._last[0] is value else None

    def compare(self, left: Any, symbol: str, right: Any, result: Any) -> None:
        """Notes a comparison of Python's numbers."""
        for number in (left, right):
            if type(number) in (int, float):
                self._note_number(number)
        if isinstance(result, bool):
            numbers = all(isinstance(side, (bool, int, float)) for side in (left, right))
            self._last = result, _compare(self, symbol, left, right) if numbers and symbol in _SIGNS else None

    def conclude(self, value: Any, margin: Margin | None) -> None:
        """Notes how far a condition that others make up is from its other answer."""
        if isinstance(value, Tensor):
            if margin is not None:
                self._margins[id(value)] = value, margin
        else:
            self._last = value, margin

    def note(self, test: Any, part: int) -> bool:
        """The truth of a condition, which is recorded for the decision that rewritten code takes."""
        with below_function_modes():
            if time.thread_time() > self._end:
                raise OutOfTime
            margin, is_yes = self.margin_of(test), bool(test)
            self._last = None, None
            self.answers.setdefault(present_site(part), []).append(Answer(is_yes, margin))
        return is_yes

    def note_round(self, loop: object, *, goes_on: bool) -> None:
        """Notes that a loop has another round, or ends."""
        self._loops.append(loop)  # so that its identity stays its own
        key = present_site(ROUNDS), id(loop)
        self._rounds[key] = self._rounds.get(key, 0) + goes_on

    def _note_number(self, value: Any) -> None:
        if isinstance(value, (int, float)) and math.isfinite(_as_float(value)):
            self.numbers[float(value)] = None


_log: ContextVar[AnswerLog | None] = ContextVar("answers", default=None)


def present_log() -> AnswerLog | None:
    """The log of the run that this is part of; None where nobody records."""
    return _log.get()


def answer(test: Any, part: int = 0) -> bool:
    """``bool(test)``; recorded where a log is in force.

    Args:
        test: The condition of a decision.
        part: Its number among the operands of ``and`` or ``or``, from 1.
    """
    log = _log.get()
    return bool(test) if log is None else log.note(test, part)


def note_round(loop: object, *, goes_on: bool) -> None:
    """Notes that a loop has another round, or ends, where a log is in force."""
    log = _log.get()
    if log is not None:
        log.note_round(loop, goes_on=goes_on)


def note_decision(session: Session, test: Any, part: int = 0) -> None:
    """Notes in a search for decisions that one of them depends on values."""
    _note(session, session.value_sites, test, part)


def note_loop(session: Session, test: Any) -> None:
    """Notes in a search for decisions that values decide how many rounds a loop has."""
    _note(session, session.loop_sites, test, ROUNDS)


def _note(session: Session, sites: dict[Site, str], test: Any, part: int) -> None:
    if not session.surveying or not isinstance(test, Tensor):
        return
    site = present_site(part)
    if site not in sites and session.from_data(test):
        sites[site] = _present_place()


def present_site(part: int = 0) -> Site:
    """The decision that the model's code takes at present."""
    frame = _present_frame()
    return frame.f_code, frame.f_lasti, part


def _present_place() -> str:
    frame = _present_frame()
    return short(frame.f_code.co_filename, frame.f_lineno)


def _present_frame() -> types.FrameType:
    return next(f for f in frames() if not str(f.f_globals.get("__name__", "")).startswith("torch_onnx_compat."))


# How far comparisons, and what is made of them, are from their other answers


def _compare(log: AnswerLog, symbol: str, left: Any, right: Any) -> Margin | None:
    sides = [side if isinstance(side, Tensor) else _as_float(side) for side in (left, right)]
    if any(isinstance(side, Tensor) and (not side.numel() or side.is_complex()) for side in sides):
        return None
    x, y = (side.to(torch.float64) if isinstance(side, Tensor) else side for side in sides)
    slope: Any = _difference(x, y) * _SIGNS[symbol]
    distance = abs(slope)
    value = -distance if symbol == "==" else distance if symbol == "!=" else slope
    beside_nan = math.inf if symbol == "!=" else -math.inf
    return Margin(_where(value != value, beside_nan, value), slope, max(map(_magnitude, (x, y))))


def _difference(x: Any, y: Any) -> Any:
    """``x - y``, of equal infinities too."""
    return _where(x == y, 0.0, x - y)


def _where(condition: Any, one: float, other: Any) -> Any:
    if isinstance(condition, Tensor):
        return torch.where(condition, one, other)
    return one if condition else other


def _magnitude(side: Tensor | float) -> float:
    """The largest finite magnitude: how far apart the numbers are that a rounding yields."""
    if isinstance(side, Tensor):
        return float(side.detach().abs().nan_to_num(nan=0.0, posinf=0.0).max())
    return abs(side) if math.isfinite(side) else 0.0


def _as_float(number: Any) -> float:
    """A number of Python in float64; one that is too large for it is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_whole(distance: float, scale: float) -> bool:
    """Whether a distance is one of whole numbers, which nothing rounds."""
    return distance == round(distance) and scale < 2**24


_SIGNS = {">": 1, ">=": 1, "<": -1, "<=": -1, "==": 1, "!=": 1}


def _comparison(symbol: str) -> Callable[..., Margin | None]:
    def rule(log: AnswerLog, input: Any, other: Any, **_: Any) -> Margin | None:
        log._note_number(other)
        return _compare(log, symbol, input, other)

    return rule


def _reduction(name: str) -> Callable[..., Margin | None]:
    def rule(log: AnswerLog, input: Tensor, *args: Any, **kwargs: Any) -> Margin | None:
        margin = log.margin_of(input)
        if margin is None or not isinstance(margin.value, Tensor):
            return margin
        value = getattr(margin.value, name)(*args, **kwargs)
        return Margin(value, value, margin.scale)

    return rule


def _negation(log: AnswerLog, input: Tensor) -> Margin | None:
    return negate(log.margin_of(input))


def negate(margin: Margin | None) -> Margin | None:
    """How far the negation of a condition is from its other answer."""
    return None if margin is None else Margin(-margin.value, -margin.slope, margin.scale)


def nearest(margins: Sequence[Margin | None], decisive: bool) -> Margin | None:
    """How far ``or`` is from its other answer, or ``and`` where no is decisive, given its operands' margins so far."""
    known = [margin for margin in margins if margin is not None]
    return (max if decisive else min)(known, key=lambda margin: float(margin.value), default=None)


def _junction(of_tensors: Any) -> Callable[..., Margin | None]:
    def rule(log: AnswerLog, input: Any, other: Any) -> Margin | None:
        one, two = log.margin_of(input), log.margin_of(other)
        if one is None or two is None:
            return one or two
        value = of_tensors(torch.as_tensor(one.value), torch.as_tensor(two.value))
        return Margin(value, value, max(one.scale, two.scale))

    return rule


_RULES: dict[str, Callable[..., Margin | None]] = {
    **dict.fromkeys(("gt", "__gt__", "greater"), _comparison(">")),
    **dict.fromkeys(("ge", "__ge__", "greater_equal"), _comparison(">=")),
    **dict.fromkeys(("lt", "__lt__", "less"), _comparison("<")),
    **dict.fromkeys(("le", "__le__", "less_equal"), _comparison("<=")),
    **dict.fromkeys(("eq", "__eq__"), _comparison("==")),
    **dict.fromkeys(("ne", "__ne__", "not_equal"), _comparison("!=")),
    "any": _reduction("amax"),
    "all": _reduction("amin"),
    **dict.fromkeys(("__invert__", "bitwise_not", "logical_not"), _negation),
    **dict.fromkeys(("__and__", "bitwise_and", "logical_and"), _junction(torch.minimum)),
    **dict.fromkeys(("__or__", "bitwise_or", "logical_or"), _junction(torch.maximum)),
}
"""By the names of torch's functions."""
