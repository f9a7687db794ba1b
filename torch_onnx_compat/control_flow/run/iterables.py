"""Iterables whose length is known only when the file runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.run.exact import compare_exactly, promoted
from torch_onnx_compat.control_flow.run.join import same_shape
from torch_onnx_compat.control_flow.run.lengths import at_least, divided_up, is_scannable
from torch_onnx_compat.control_flow.run.lists import AppendLog, Part, Rows
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS
from torch_onnx_compat.control_flow.run.pieces import Pieces
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.session import Session, as_tensor, current
from torch_onnx_compat.tracing import is_tracing, without_tracing


@dataclass(frozen=True, eq=False)
class CountedItems:
    """Items by number; their count depends on the inputs."""

    length: Any
    """The count: a symbolic size, or an int64 tensor of shape ()."""
    at: Callable[[Any], Any]
    """Gives the item of a number, which is an int64 tensor of shape (), or an int."""
    one_by_one: bool = False
    """Whether it does not give several items of several numbers, stacked."""
    read: Callable[[Any], Any] | None = None
    """Gives what Python has at a number, where `at` gives it as a tensor."""
    kind: type = list
    """Whether it is a list or a tuple, which never equal each other."""

    def __eq__(self, other: object) -> Any:
        """Whether it is the same list, a boolean tensor of shape ().

        Raises:
            RefusedDecision: The other one's length depends on the inputs, too; or the items are no numbers.
        """
        if isinstance(other, (CountedItems, Rows, AppendLog)):
            raise refusal("two lists are compared whose lengths depend on the inputs; compare tensors: torch.equal.")
        if not isinstance(other, (list, tuple)) or not isinstance(other, self.kind):
            return False
        items = self._numbers("compared with another one")
        return _are_numbers(items, as_tensor(self.length), list(other))

    def __contains__(self, item: Any) -> Any:
        return bool(self.contains(item))  # a decision: what asks for a container's own answer gets a bool of it

    def __hash__(self) -> int:
        raise refusal("a list or a tuple whose length depends on the inputs is looked up; compare it with ==.")

    def contains(self, item: Any) -> Any:
        """Whether a number is among the items, a boolean tensor of shape ()."""
        items = self._numbers("searched")
        if type(item) in (bool, int, float):
            found = compare_exactly(items, "==", float(item) if type(item) is float else int(item))
        else:
            found = _is_number(items, item)
        # Not any(), which of no items is not False in every exporter's form.
        return found.sum() > 0 if isinstance(found, Tensor) else torch.zeros((), dtype=torch.bool)

    def _numbers(self, doing: str) -> Tensor:
        """The items, of shape (count,)."""
        items = None if self.one_by_one else self.at(torch.arange(self.length))
        if not isinstance(items, Tensor) or items.dim() != 1:
            raise refusal(f"a list of other things than numbers, whose length depends on the inputs, is {doing}.")
        return items

    def __iter__(self) -> Any:
        raise refusal("a list is made of something whose length depends on the inputs; use a tensor, or a plain loop.")

    def __len__(self) -> int:
        return int(self.length)  # a decision, whose statement is rewritten then

    def __bool__(self) -> bool:
        return bool(self.count_items() > 0)

    def count_items(self) -> Any:
        """What ``len()`` gives."""
        return as_tensor(self.length)

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, (int, Tensor, *SYMBOLS)):
            raise refusal("a slice is taken of a list whose length depends on the inputs; slice a tensor.")
        is_from_end = isinstance(place, int) and place < 0
        return (self.read or self.at)(as_tensor(self.length) + place if is_from_end else place)

    def __setitem__(self, place: Any, value: Any) -> None:
        raise refusal("an item is put into a list whose length depends on the inputs; write to a tensor.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.kind, name):
            raise AttributeError(name)
        raise refusal(
            f".{name}() of a {self.kind.__name__} whose length depends on the inputs; make it with a loop, or use a "
            f"tensor: torch.arange, torch.cat."
        )

    def rows(self) -> Rows:
        """The items as a list.

        Raises:
            RefusedDecision: They are no tensors or numbers, or pieces in another order.
        """
        if self.one_by_one:
            raise refusal("a list is made of pieces of different sizes, in another order; use a plain loop.")
        items = self.at(torch.arange(self.length))
        if not isinstance(items, Tensor):
            raise refusal("a list is made of tuples, and its length depends on the inputs; use a plain loop.")
        return Rows([Part(items, is_several=True)])

    def __add__(self, other: Any) -> Any:
        return self.rows() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.rows()


def _are_numbers(items: Tensor, length: Tensor, wanted: list[Any]) -> Tensor:
    """Whether the items of shape (length,) are these, a boolean tensor of shape ()."""
    found = [length == len(wanted)]
    padded = torch.cat([items, items.new_zeros(len(wanted))]) if wanted else items
    for place, one in enumerate(wanted):
        item = padded[place : place + 1]
        is_known = type(one) in (bool, int, float)
        same = compare_exactly(item, "==", int(one) if type(one) is bool else one) if is_known else None
        same = _is_number(item, one) if same is None else same
        found.append(same.reshape(()) if isinstance(same, Tensor) else torch.full((), same))
    return torch.stack(found).all()


def _is_number(items: Tensor, other: Any) -> Tensor:
    """Which items are a number that values or sizes decide; none where it is none."""
    if not isinstance(other, (Tensor, *SYMBOLS)):
        return torch.zeros(items.shape, dtype=torch.bool)
    number = as_tensor(other)
    if number.dim() or number.is_floating_point() or items.is_floating_point():
        raise refusal("a list whose length depends on the inputs is compared with a number that is no whole one.")
    return promoted(items) == promoted(number)


def as_counted_items(session: Session, value: Any) -> CountedItems | None:
    """An iterable as counted items; None if its length cannot vary, or it is no iterable."""
    if isinstance(value, CountedItems):
        return value
    if isinstance(value, Pieces):
        return CountedItems(value.count_items(), value.at, one_by_one=True)
    if isinstance(value, Rows):
        if value.ragged_axis is not None:
            return CountedItems(value.count_items(), value.at, one_by_one=True)
        return as_counted_items(session, value.stacked())
    if isinstance(value, Tensor) and value.dim() and session.is_dynamic(value.shape[0]):
        items = _with_an_item(value)
        return CountedItems(value.shape[0], lambda number: items[number])
    return None


def _with_an_item(value: Tensor) -> Tensor:
    """A tensor in which there is an item for a trace to read: of none, another one behind them, which no file reads."""
    if not is_tracing():
        return value
    with without_tracing():
        is_empty = not len(value)
    return torch.cat([value, value.new_zeros(1, *value.shape[1:])]) if is_empty else value


def listed(*parts: tuple[bool, Any]) -> Any:
    """``[a, *b]``: each part with whether it has a star."""
    session = current()
    grown = next((part for starred, part in parts if starred and isinstance(part, AppendLog)), None)
    if grown is not None:
        return _longer(grown, parts)
    known = [_as_list(session, p) if session is not None and starred else None for starred, p in parts]
    if all(one is None for one in known):
        return [item for starred, part in parts for item in (part if starred else (part,))]
    made = Rows([])
    for (starred, part), counted in zip(parts, known, strict=True):
        made.extend(counted if counted is not None else part if starred else [part])
    return made


def _longer(grown: AppendLog, parts: Sequence[tuple[bool, Any]]) -> Any:
    """The same of the list that a loop appends to, with what stands before and after it."""
    place = next(at for at, (_, part) in enumerate(parts) if part is grown)
    sides = [
        [x for starred, p in some for x in (p if starred else (p,))] for some in (parts[:place], parts[place + 1 :])
    ]
    made = sides[0] + grown if sides[0] else grown.copy()
    return made + sides[1] if sides[1] else made


def repeat_items(items: Sequence[Any], count: Any) -> Rows:
    """``items * count``: the tensors or numbers, stacked, so many times.

    Raises:
        RefusedDecision: They are no tensors of one shape, and no list of numbers.
    """
    is_one = len(items) == 1 and (isinstance(items[0], Tensor) or type(items[0]) in (int, float))
    known = None if is_one else as_fixed_items(items)
    if (known is None and not is_one) or (isinstance(items, tuple) and not isinstance(items[0], Tensor)):
        raise refusal(
            "a list is repeated a number of times that depends on the inputs; only one of tensors of one shape, or of "
            "numbers, can be. Use repeat or expand of a tensor instead."
        )
    times = count if is_scannable(count) else at_least(count, 0)
    if known is None:  # shapes are not compared: they may vary
        item = as_tensor(items[0])
        return Rows([Part(item.unsqueeze(0).expand(times, *item.shape), is_several=True)])
    stacked = known.at(torch.arange(len(items)))
    return Rows([Part(stacked.unsqueeze(0).expand(times, *stacked.shape).flatten(0, 1), is_several=True)])


def _as_list(session: Session, items: Any) -> Rows | None:
    """An iterable as a list; None if its length cannot vary, or it is no iterable."""
    if isinstance(items, Rows):
        return items
    known = as_counted_items(session, items)
    return None if known is None else known.rows()


def as_fixed_items(value: Any) -> CountedItems | None:
    """An iterable of fixed length as counted items; None if its items are no tensors of one shape, nor numbers."""
    if isinstance(value, range):
        return CountedItems(as_tensor(len(value)), lambda number: number * value.step + value.start)
    items = list(value) if isinstance(value, (list, tuple)) else value
    if isinstance(items, list):
        if not items or not (_are_alike(items) or all(type(item) in (int, float) for item in items)):
            return None
        items = torch.stack([as_tensor(item) for item in items])
    if not isinstance(items, Tensor) or not items.dim():
        return None
    return CountedItems(as_tensor(items.shape[0]), lambda number: items[number])


def _are_alike(items: list[Any]) -> bool:
    first = items[0]
    return all(isinstance(one, Tensor) and one.dtype == first.dtype and same_shape(one, first) for one in items)


# Stand-ins for the functions that make iterables


def _range(session: Session, function: Any, *args: Any) -> Any:
    if not any(session.is_dynamic(arg) for arg in args):
        return function(*args)
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    if isinstance(step, (Tensor, *SYMBOLS)):
        one = as_tensor(step)
        distance = torch.where(one > 0, as_tensor(stop) - as_tensor(start), as_tensor(start) - as_tensor(stop))
        distance = divided_up(distance, one.abs())
    else:
        distance = stop - start if step > 0 else start - stop
        distance = divided_up(distance, abs(step)) if abs(step) > 1 else distance
    length = distance if is_scannable(distance) else at_least(distance, 0)

    def at(number: Tensor) -> Tensor:
        value = number if type(step) is int and step == 1 else number * step
        return value if isinstance(start, int) and start == 0 else value + as_tensor(start)

    return CountedItems(length, at)


def _enumerate(session: Session, function: Any, items: Any, start: int = 0) -> Any:
    known = as_counted_items(session, items)
    if known is None:
        return function(items, start)
    return CountedItems(known.length, lambda number: (number + start if start else number, known.at(number)))


def _zip(session: Session, function: Any, *items: Any, **kwargs: Any) -> Any:
    known = [as_counted_items(session, item) for item in items]
    found = [one for one in known if one is not None]
    if not found:
        return function(*items, **kwargs)
    known = [as_fixed_items(item) if one is None else one for one, item in zip(known, items, strict=True)]
    found = [one for one in known if one is not None]
    if len(found) < len(known):
        raise refusal("something whose length depends on the inputs is zipped with a list of what is no tensor.")
    lengths = [one.length for one in found]
    if any(isinstance(length, Tensor) for length in lengths):
        length = functools.reduce(torch.minimum, map(as_tensor, lengths))
    else:
        length = functools.reduce(torch.sym_min, lengths)
    return CountedItems(length, lambda number: tuple(one.at(number) for one in found))


# The names of parameters are torch's own: a model may use them.


def _unbind(session: Session, function: Any, input: Tensor, dim: int = 0) -> Any:
    if not session.is_dynamic(input.shape[dim]):
        return input.unbind(dim)
    return as_counted_items(session, input.movedim(dim, 0))


def _split(
    session: Session,
    function: Any,
    tensor: Tensor,
    split_size: Any = None,
    dim: int = 0,
    *,
    split_size_or_sections: Any = None,
) -> Any:
    size = split_size_or_sections if split_size is None else split_size
    if type(size) is not int or size < 1 or not session.is_dynamic(tensor.shape[dim]):
        return tensor.split(size, dim)
    return Pieces(tensor, dim % tensor.dim(), size)


def _chunk(session: Session, function: Any, input: Tensor, chunks: int, dim: int = 0) -> Any:
    is_number = type(chunks) is int and chunks > 0
    if not session.is_dynamic(input.shape[dim]) or not (is_number or session.is_dynamic(chunks)):
        return input.chunk(chunks, dim)
    size = at_least(divided_up(input.shape[dim], chunks), 1)
    return Pieces(input, dim % input.dim(), size, chunks if is_number else None)


def _reversed(session: Session, function: Any, items: Any) -> Any:
    if isinstance(items, Rows) and not isinstance(items, Pieces):
        return items.reversed()
    known = as_counted_items(session, items)
    if known is None:
        return function(items)
    last = as_tensor(known.length) - 1
    return CountedItems(known.length, lambda number: known.at(last - number), known.one_by_one)


def _list(session: Session, function: Any, *args: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Rows):
        return args[0].copy()
    known = as_counted_items(session, args[0]) if len(args) == 1 else None
    return replace(known, kind=function) if known is not None else function(*args)


STAND_INS: dict[Any, Callable[..., Any]] = {
    range: _range,
    enumerate: _enumerate,
    zip: _zip,
    list: _list,
    tuple: _list,
    reversed: _reversed,
    torch.unbind: _unbind,
    torch.split: _split,
    torch.chunk: _chunk,
}

METHODS: dict[str, Callable[..., Any]] = {"unbind": _unbind, "split": _split, "chunk": _chunk}
