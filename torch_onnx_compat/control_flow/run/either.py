"""What a function returns where its decision comes to one kind of value or another, such as None or a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.run.join import Mismatch, join


@dataclass(frozen=True)
class Either:
    """One value or another; the statement that made the call moves what follows it into a branch for each."""

    condition: Tensor
    """A boolean of shape (): whether it is the first."""
    first: Any
    second: Any
    is_postponed: bool = False
    """Whether these are functions that make the values: one of them fails where the other is wanted."""

    def take_first(self) -> Any:
        """The first value; it is made here if it was postponed."""
        return self.first() if self.is_postponed else self.first

    def take_second(self) -> Any:
        """The second value, likewise."""
        return self.second() if self.is_postponed else self.second


def make_either(condition: Tensor, a: Any, b: Any) -> Either:
    """`a` where the condition holds, else `b`; these may be one value or another themselves.

    Raises:
        Mismatch: There are more than two kinds of them, or one is not made yet.
    """
    if any(isinstance(one, Either) and one.is_postponed for one in (a, b)):
        raise Mismatch("a branch within a branch does not run on the example")
    sides = [one if isinstance(one, Either) else None for one in (a, b)]
    if sides == [None, None]:
        return Either(condition, a, b)
    mine, theirs = sides
    if mine is not None and theirs is not None:
        first, second = join(condition, mine.first, theirs.first), join(condition, mine.second, theirs.second)
        return Either(join(condition, mine.condition, theirs.condition), first, second)
    if theirs is None:
        return make_either(~condition, b, a)
    try:
        return Either(condition | theirs.condition, join(condition, a, theirs.first), theirs.second)
    except Mismatch:
        return Either(~condition & theirs.condition, theirs.first, join(condition, a, theirs.second))
