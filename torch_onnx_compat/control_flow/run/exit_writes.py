"""What the rounds of an unrolled loop write in place after an exit that may have been taken.

The file makes these rounds all the same, so what was written to, also through a view, gets back what it had at the
exit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor

from torch_onnx_compat.control_flow.run.aliases import copy_of, pause_watch, present_aliases
from torch_onnx_compat.control_flow.run.guard import made_by, root_of
from torch_onnx_compat.control_flow.run.join import join
from torch_onnx_compat.control_flow.run.lifting import depth_of_lifting


class ExitWrites:
    """The exits of one loop, and the tensors that its rounds write to."""

    def __init__(self) -> None:
        self._exits: list[Tensor] = []
        self._depth = 0
        self._aliases = present_aliases()
        self._copies: dict[int, tuple[Tensor, list[tuple[int, Tensor]]]] = {}
        """By identity: a tensor, and its contents before the first write after some number of exits."""
        self._made: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self._births: dict[int, int] = {}
        """By identity of a tensor that a round made: after how many exits."""

    def add_exit(self, condition: Tensor) -> None:
        """Notes an exit, which is taken where the condition holds."""
        if not self._exits:
            self._depth = depth_of_lifting()
            self._aliases.listeners.append(self)
        self._exits.append(condition)

    def note_write(self, targets: Iterable[Tensor]) -> None:
        """Keeps what tensors have that are about to be written to."""
        if depth_of_lifting() != self._depth:
            return  # a function that is lifted writes to copies
        count = len(self._exits)
        for root in map(root_of, targets):
            _, copies = self._copies.setdefault(id(root), (root, []))
            if self._birth_of(root) < count and (not copies or copies[-1][0] < count):
                copies.append((count, copy_of(root)))

    def note_call(self, arguments: Any, result: Any) -> None:
        """Notes tensors that a round makes: at the exits before they have no contents."""
        for root in made_by(result, arguments):
            self._made[id(root)] = root
            self._births[id(root)] = len(self._exits)

    def _birth_of(self, root: Tensor) -> int:
        return self._births[id(root)] if self._made.get(id(root)) is root else 0

    def join(self, known: Collection[int]) -> None:
        """Gives the tensors the contents of the exit that is taken, but for some that the caller joins.

        Args:
            known: The identities of these.
        """
        if not self._exits:
            return
        self._aliases.listeners.remove(self)
        with pause_watch():
            for root, copies in self._copies.values():
                if copies and id(root) not in known:
                    root.copy_(self._at_exit(root, copies))

    def _at_exit(self, root: Tensor, copies: list[tuple[int, Tensor]]) -> Tensor:
        value = root
        for number in range(copies[-1][0], self._birth_of(root), -1):
            content = next(copy for count, copy in copies if count >= number)
            value = join(self._exits[number - 1], content, value)
        return value
