"""Tensors that Python has under several names, where the file has one for each name.

After ``y = x if c else x * 2`` the name y is x, or a tensor of its own; in the file it is always one of its own. That
is the same until one of them is written in place: the other changes in Python then, and does not in the file. Who reads
what such a write would have changed is refused, whichever way the example goes. Tensors are told apart by their
storages, which views share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from torch_onnx_compat.backends.decisions import is_metadata
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import below_function_modes, without_tracing
from torch_onnx_compat.watch import Watcher, writes_in_place

T = TypeVar("T")

Marks = dict[int, str]
"""Storages whose contents are not what Python has, each with the place of the write that they lack."""


class WriteListener(Protocol):
    """What a loop hears of the calls of its rounds."""

    def note_write(self, targets: Iterable[Tensor]) -> None:
        """These tensors are about to be written to."""

    def note_call(self, arguments: Any, result: Any) -> None:
        """A call with these arguments has returned this."""


@dataclass(eq=False)
class Item:
    """A part of a tensor, which in Python is a view and in the file a copy: either is written where the other was."""

    owner: Tensor
    write_owner: Callable[[], None]
    """Writes into the owner what the item has."""
    write_item: Callable[[], None]
    """Writes into the item what the owner has."""
    version: Callable[[], int]
    """How often the owner was written to."""

    def __post_init__(self) -> None:
        self._known = self.version()

    def put(self) -> None:
        """Brings the owner up to date."""
        self.write_owner()
        self._known = self.version()

    def renew(self) -> None:
        """Brings the item up to date, if the owner was written to."""
        if self.version() != self._known:
            with pause_watch():
                self.write_item()
            self._known = self.version()


@dataclass
class Aliases:
    """What the tensors of one run may share memory with in Python, and which of them are out of date."""

    marks: Marks = field(default_factory=dict)
    is_paused: bool = False
    listeners: list[WriteListener] = field(default_factory=list)
    """Who is to hear of each write in place before it is made."""
    branches: int = 0
    """How many branches that may not be taken are being run."""
    _origins: dict[int, frozenset[int]] = field(default_factory=dict)
    """By storage: the storages that it stands for, one or another."""
    _known: dict[int, StorageWeakRef] = field(default_factory=dict)
    """By storage: a reference that keeps its number from being given to another one."""
    _items: dict[int, Item] = field(default_factory=dict)
    """By storage: the items that were taken by a number that is a tensor."""
    _originals: dict[int, int] = field(default_factory=dict)
    """By storage: the one that it replaces in a function that is being lifted, where nobody reads the other."""

    @property
    def is_watching(self) -> bool:
        """Whether reads and writes matter now."""
        return bool(self._origins or self.listeners) and not self.is_paused

    def note(self, made: Tensor, sides: Iterable[Any], mark: str | None = None) -> None:
        """Notes that a tensor stands for one of several, with the mark of one of them unless another is given."""
        own = self._number(made)
        found = [self._number(side) for side in sides if isinstance(side, Tensor)]
        if own is None or own in found:
            return
        origins = frozenset(origin for number in found for origin in self._origins_of(number))
        if not origins:
            return
        self._origins[own] = origins | self._origins.get(own, frozenset())
        inherited = next((self.marks[number] for number in found if number in self.marks), "")
        self.mark(made, inherited if mark is None else mark)

    def note_item(self, made: Tensor, item: Item) -> None:
        """Notes that a tensor is an item of another one.

        The two are brought up to date where the other was written to; where a branch writes to one of them, who reads
        the other is refused.
        """
        self.note(made, [item.owner])
        number = self._number(made)
        if number is not None:
            self._items[number] = item

    def items_among(self, tensors: Callable[[], Iterable[Tensor]]) -> list[Item]:
        """The items of which some tensors are, or are views; the tensors are found if there are items at all."""
        numbers = dict.fromkeys(map(self._number, tensors())) if self._items else ()
        return [self._items[number] for number in numbers if number in self._items]

    def note_original(self, copy: Tensor, tensor: Tensor) -> None:
        """Notes that a copy is all that a function being lifted has of a tensor: a write to it lacks nowhere there."""
        own, other = self._number(copy), self._number(tensor)
        if own is not None and other is not None:
            self._originals[own] = other

    def forget(self, made: Tensor) -> None:
        """Forgets what a tensor stands for, where the writes that follow do not change it in Python."""
        number = self._number(made)
        if number is not None:
            self._origins.pop(number, None)

    def write(self, tensor: Tensor, place: str) -> None:
        """Notes a write in place: what may be the same tensor in Python is out of date from now on."""
        own = self._number(tensor)
        origins = self._origins_of(own)
        same = (number for number, others in self._origins.items() if not origins.isdisjoint(others))
        original = None if own is None else self._originals.get(own)
        for number in {*same, *origins} - {own, original}:
            if self.branches or not self._items.keys() & {number, own}:
                self.marks.setdefault(number, place)

    def mark(self, tensor: Tensor, place: str) -> None:
        """Notes that a tensor lacks the write of a place; the empty place is none."""
        number = self._number(tensor)
        if number is not None and place:
            self.marks.setdefault(number, place)

    def mark_of(self, value: Any) -> str:
        """The place of the write that a tensor in a nested value lacks; empty if there is none."""
        if not self.marks:
            return ""
        numbers = (self._number(tensor) for tensor in _tensors_in(value))
        return next((self.marks[number] for number in numbers if number in self.marks), "")

    def may_share(self, one: Tensor, others: Iterable[Tensor]) -> bool:
        """Whether a tensor may share memory in Python with one of some others."""
        origins = self._origins_of(self._number(one))
        return any(not origins.isdisjoint(self._origins_of(self._number(other))) for other in others)

    def may_be_one(self, one: Tensor, other: Tensor) -> bool:
        """Whether a decision has chosen a tensor for another name, so that both are one in Python, or are not."""
        numbers = [self._number(one), self._number(other)]
        is_chosen = any(number in self._origins for number in numbers)
        return is_chosen and numbers[0] != numbers[1] and self.may_share(one, [other])

    def take_back(self, before: Marks, known: frozenset[int]) -> Marks:
        """Takes the marks back that storages got since which were known before; returns them."""
        new = [number for number in self.marks if number in known and number not in before]
        return {number: self.marks.pop(number) for number in new}

    @property
    def known(self) -> frozenset[int]:
        """The storages that any relation or write was about."""
        return frozenset(self._known)

    def _origins_of(self, number: int | None) -> frozenset[int]:
        return frozenset() if number is None else self._origins.get(number, frozenset((number,)))

    def _number(self, tensor: Tensor) -> int | None:
        """The number of a tensor's storage; None if it has none, as sparse tensors."""
        with below_function_modes(), without_tracing():
            try:
                storage = tensor.untyped_storage()
            except (NotImplementedError, RuntimeError):
                return None
            number: int = storage._cdata
            if number not in self._known:
                self._known[number] = StorageWeakRef(storage)
        return number


class _Watch(Watcher):
    """Finds the reads and the writes in place."""

    def __init__(self, aliases: Aliases, place: Callable[[], str], refuse: Callable[[str, str], Exception]) -> None:
        super().__init__()
        self._aliases, self._place, self._refuse = aliases, place, refuse

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """All but what tells facts about a tensor, and its properties, which are facts or views."""
        return self._aliases.is_watching and not _reads_nothing(func)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Refuses arguments that are out of date, makes the call, and notes which arguments it wrote to."""
        self._check((args, kwargs), lambda: f"is read at {self._place()}")
        tensors = _tensors_in((args, kwargs))
        before = _versions(tensors)
        listeners = list(self._aliases.listeners)
        written = targets_of(func, args, kwargs) if listeners else []
        for listener in listeners:
            listener.note_write(written)
        result = self.pass_on(func, args, kwargs)
        for listener in listeners:
            listener.note_call((args, kwargs), result)
        for tensor, old, new in zip(tensors, before, _versions(tensors), strict=True):
            if old != new:
                self._aliases.write(tensor, self._place())
        return result

    def check_results(self, value: Any) -> None:
        """Refuses results of the run that are out of date."""
        self._check(value, lambda: "is returned")

    def _check(self, value: Any, describe: Callable[[], str]) -> None:
        written_at = self._aliases.mark_of(value)
        if written_at:
            raise self._refuse(
                f"this writes in place to a tensor to which a decision or a loop that depends on the inputs gives a "
                f"second name, under which it {describe()}; the file has a tensor for each name. Write x = x + y "
                f"instead of x += y, or let the second name be a clone().",
                written_at,
            )

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""


def targets_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that a call writes to in place."""
    return tree.tensors_in(kwargs.get("out", args[0] if args else None)) if writes_in_place(func, kwargs) else []


@functools.cache
def _reads_nothing(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name in ("__get__", "__len__", "untyped_storage") or (is_metadata(func) and name != "__setitem__")


def _tensors_in(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each tensor was written in place."""
    with below_function_modes(), without_tracing():
        return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


_current: ContextVar[Aliases | None] = ContextVar("aliases", default=None)


@contextmanager
def watch_aliases(place: Callable[[], str], refuse: Callable[[str, str], Exception]) -> Iterator[Callable[[Any], None]]:
    """Watches the aliases of one run.

    Args:
        place: Tells where the model is.
        refuse: Makes the error of a reason and a place.

    Yields:
        Checks the results of the run, and raises that error.
    """
    aliases = Aliases()
    token = _current.set(aliases)
    try:
        with _Watch(aliases, place, refuse) as watch:
            yield watch.check_results
    finally:
        _current.reset(token)


def present_aliases() -> Aliases:
    """Those of the present run; where none are watched, some that nobody looks at."""
    found = _current.get()
    return Aliases() if found is None else found


def may_be_one(one: Any, other: Any) -> bool:
    """Whether two values are tensors that are one in Python, or are not, as a decision comes out."""
    return isinstance(one, Tensor) and isinstance(other, Tensor) and present_aliases().may_be_one(one, other)


def stand_for(made: T, sides: Iterable[Any], mark: str | None = None) -> T:
    """Notes that a tensor stands for one of several, which Python has in its place; returns it.

    Args:
        made: The tensor; a number has no other name.
        sides: What it may be; what is no tensor among them is no matter.
        mark: The place of the write that it lacks, empty if there is none; by default that of a side.
    """
    aliases = _current.get()
    if aliases is not None and isinstance(made, Tensor):
        aliases.note(made, sides, mark)
    return made


def note_item(made: Tensor, item: Item) -> None:
    """Notes that a tensor is an item of another one, which in Python is a view of it and in the file a copy."""
    aliases = _current.get()
    if aliases is not None:
        aliases.note_item(made, item)


def copy_of(tensor: Tensor) -> Tensor:
    """A copy that stands for a tensor; taking it is no read."""
    with pause_watch():
        copy = tensor.clone()
    return stand_for(copy, [tensor])


@contextmanager
def in_branch() -> Iterator[None]:
    """While active, a branch is run that may not be taken."""
    aliases = present_aliases()
    aliases.branches += 1
    try:
        yield
    finally:
        aliases.branches -= 1


def shares_with_written(values: Iterable[Any], writes: Mapping[int, tuple[Tensor, Tensor]]) -> bool:
    """Whether a tensor among some values may share memory in Python with one that a round wrote to."""
    aliases = present_aliases()
    written = [tensor for tensor, _ in writes.values()]
    return any(aliases.may_share(value, written) for value in values if isinstance(value, Tensor))


@contextmanager
def pause_watch() -> Iterator[None]:
    """What is done inside neither reads nor writes, as Python does none of it."""
    aliases = present_aliases()
    before, aliases.is_paused = aliases.is_paused, True
    try:
        yield
    finally:
        aliases.is_paused = before


@contextmanager
def effect(*marks: Marks) -> Iterator[None]:
    """Carries out what branches did that were undone: what their writes made out of date is so, whatever comes of it.

    Args:
        marks: Of each branch, those that were taken back.
    """
    aliases = present_aliases()
    for some in marks:
        for number, place in some.items():
            aliases.marks.setdefault(number, place)
    with pause_watch():
        yield
