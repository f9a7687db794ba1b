"""Lists and dicts of which a decision chooses one: in the file the chosen one is always one of its own.

After ``bank = a if c else b`` the name bank is a or b in Python. That is the same until one of them is changed: the
other changes in Python then, and does not in the file. So such a change is refused, whichever way the example goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch_onnx_compat.caller.reach import CONTAINERS
from torch_onnx_compat.caller.snapshot import Contents
from torch_onnx_compat.control_flow.run.refusal import here, refusal
from torch_onnx_compat.places import short


@dataclass(frozen=True)
class _Choice:
    chosen: Contents
    sides: tuple[Contents, ...]
    place: tuple[str, int]

    @property
    def all(self) -> tuple[Contents, ...]:
        return (self.chosen, *self.sides)

    def has(self, value: Any) -> bool:
        return any(one.holder is value for one in self.all)


@dataclass
class Choices:
    """The choices among containers that a run has made so far."""

    _made: list[_Choice] = field(default_factory=list)
    _copies: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """By identity: the copies that branches change, with what they are copies of."""
    _reached: Collection[int] = ()
    """The identities of the containers that were within reach before the decision."""

    @contextmanager
    def among(self, reached: Collection[int]) -> Iterator[None]:
        """While active, what two branches return is joined.

        Args:
            reached: The identities of the containers that were within reach before them; the others have no name but
                those that the branches give them.
        """
        before, self._reached = self._reached, reached
        try:
            yield
        finally:
            self._reached = before

    def note(self, chosen: Any, sides: tuple[Any, ...]) -> None:
        """Notes that a container is one of two, if one of these was there before."""
        if not isinstance(chosen, CONTAINERS) or not any(id(side) in self._reached for side in sides):
            return
        originals = {id(self._copies.get(id(side), (None, side))[1]) for side in sides}
        if len(originals) > 1:  # else a branch has changed the one that both are, and the name is the changed one's
            self._made.append(_Choice(Contents.of(chosen), tuple(map(Contents.of, sides)), here()))

    def copied(self, copy: Any, value: Any) -> None:
        """Notes the copy of a container that a branch is about to change.

        Raises:
            RefusedDecision: A decision has given the container a second name.
        """
        self._copies[id(copy)] = copy, value
        choice = next((one for one in self._made if one.has(value)), None)
        if choice is not None:
            raise _second_name(choice)

    def check(self) -> None:
        """Raises if a container of a choice was changed since."""
        for choice in self._made:
            if any(contents.is_changed() for contents in choice.all):
                raise _second_name(choice)

    def is_one_of(self, left: Any, right: Any) -> bool:
        """Whether two containers are one in Python where a decision goes one way, and two where it goes the other."""
        return left is not right and any(choice.has(left) and choice.has(right) for choice in self._made)

    def clear(self) -> None:
        """Forgets everything."""
        self._made.clear()
        self._copies.clear()


def _second_name(choice: _Choice) -> Exception:
    kind = type(choice.chosen.holder).__name__
    return refusal(
        f"a decision that depends on the inputs chooses one {kind} or another, and one of them is changed afterwards, "
        f"which the other name shows, too; let the decision choose a copy.",
        short(*choice.place),
    )
