"""Lists whose length depends on the inputs: those that a loop in the file fills, and those that decisions append to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from torch_onnx_compat.backends import internals
from torch_onnx_compat.control_flow.run.aliases import stand_for
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.session import as_tensor
from torch_onnx_compat.watch import Watcher


@dataclass(frozen=True)
class Part:
    """One item of a list, or several.

    Attributes:
        value: The item; several are stacked, or joined on an axis.
        keep: Whether the item is in the list: True, or a boolean tensor of shape ().
        is_several: Whether it is several items.
        axis: The axis on which several items are joined, whose sizes differ there; None where they are stacked.
        sizes: The size of each joined item on that axis, an int64 tensor of shape (count,); None where nobody knows.
    """

    value: Any
    keep: Any = True
    is_several: bool = False
    axis: int | None = None
    sizes: Any = None

    def count(self) -> Any:
        """How many items it is, if all are in the list."""
        if not self.is_several:
            return 1
        return self.value.shape[0] if self.axis is None else _known(self.sizes).shape[0]

    def sizes_on(self, axis: int) -> Tensor:
        """The size of each item on an axis, an int64 tensor of shape (count,)."""
        if self.axis is not None:
            return _known(self.sizes)
        size = as_tensor(self.value.shape[axis + self.is_several])
        return size.reshape(1).expand(self.count())


class _Parts:
    """A list as its parts, in order."""

    parts: list[Part]

    def append(self, item: Any) -> None:
        """Like list.append."""
        self.parts.append(Part(item))

    def extend(self, items: Any) -> None:
        """Like list.extend."""
        self.parts += items.parts if isinstance(items, _Parts) else map(Part, items)

    def __iadd__(self, items: Any) -> Any:
        self.extend(items)
        return self


class AppendLog(_Parts):
    """Replaces a list in a round of a loop: records what is appended, and has no more of it than its last item.

    Args:
        parts: What this round appended.
        last: The last item of the list; None where it is not known.
        length: How many items it has; None where that is not known.
    """

    def __init__(self, parts: Iterable[Part] = (), last: Any = None, length: Any = None) -> None:
        self.parts = list(parts)
        self.last, self.length = last, length
        self.in_front = False
        """Whether the loop puts items at the list's beginning."""
        self.asked: set[str] = set()
        """What else than appending the round does: "last" where it reads the last item, "length" for the length."""

    def append(self, item: Any) -> None:
        """Like list.append."""
        self._refuse_both_ends()
        super().append(item)
        self._note(item)

    def extend(self, items: Any) -> None:
        """Like list.extend."""
        self._refuse_both_ends()
        before = len(self.parts)
        super().extend(items)
        for part in self.parts[before:]:
            self._note(part.value)

    def insert(self, place: Any, item: Any) -> None:
        """Like list.insert, at the beginning."""
        if type(place) is not int or place or (self.parts and not self.in_front):
            raise refusal("a loop of varying length inserts into a list at a place that varies; append to it.")
        self.in_front = True
        self.parts.insert(0, Part(item))

    def _refuse_both_ends(self) -> None:
        if self.in_front and self.parts:
            raise refusal("a loop of varying length makes a list longer at both ends; use a list for each.")

    def _note(self, item: Any) -> None:
        self.last = item
        self.length = None if self.length is None else self.length + 1

    def copy(self) -> AppendLog:
        """A copy, for a branch that may not be taken."""
        return self.with_parts(self.parts, self.last, self.length)

    def with_parts(self, parts: Iterable[Part], last: Any, length: Any) -> AppendLog:
        """The same log with other contents."""
        made = AppendLog(parts, last, length)
        made.in_front, made.asked = self.in_front, self.asked
        return made

    def __add__(self, items: Any) -> Any:
        made = self.copy()
        made.extend(items)
        return made

    def __radd__(self, items: Any) -> Any:
        made = self.copy()
        for item in reversed(items):
            made.insert(0, item)
        return made

    def __getitem__(self, place: Any) -> Any:
        if type(place) is not int or place != -1 or self.in_front:
            return self._refuse_read()
        self.asked.add("last")
        return self.last if self.last is not None else self._refuse_read()

    def count_items(self) -> Any:
        """What ``len()`` gives."""
        self.asked.add("length")
        return self.length if self.length is not None else self._refuse_read()

    def __len__(self) -> int:
        return int(self.count_items())

    def __bool__(self) -> bool:
        return bool(self.count_items() > 0)

    def __getattr__(self, name: str) -> Any:
        raise refusal(f"a list that a loop of varying length appends to is used in it otherwise ({name}).")

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self._refuse_read())

    __hash__ = None  # type: ignore[assignment]

    def _refuse_read(self, *_: Any) -> Any:
        raise refusal(
            "a list that a loop of varying length appends to is read in it otherwise than by [-1] and len(); keep what "
            "the next round needs in a variable of its own."
        )

    __setitem__ = __iter__ = __contains__ = _refuse_read


class Rows(_Parts, list[Any]):
    """A list of tensors whose length depends on the inputs, of one shape but for one axis.

    torch.stack, torch.cat and pad_sequence accept it.

    Args:
        parts: Its items, and items that are stacked already.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        list.__init__(self)  # empty: torch's C++ argument parser reads a list's items past these methods
        self.parts = list(parts)

    def copy(self) -> Rows:
        """Like list.copy."""
        return Rows(self.parts)

    def insert(self, place: Any, item: Any) -> None:
        """Like list.insert, at the beginning."""
        if type(place) is not int or place:
            self._refuse()
        self.parts.insert(0, Part(item))

    def reverse(self) -> None:
        """Like list.reverse."""
        self.parts = self.reversed().parts

    def reversed(self) -> Rows:
        """The list in the other order."""
        if self.ragged_axis is not None:
            raise refusal("tensors of different sizes that a loop of varying length appended are taken backwards.")
        turned = (replace(p, value=p.value.flip(0)) if p.is_several else p for p in reversed(self.parts))
        return Rows(turned)

    def count_items(self) -> Any:
        """What ``len()`` gives."""
        fixed = sum(part.keep is True and not part.is_several for part in self.parts)
        found: Any = fixed
        for part in self.parts:
            if part.is_several:
                found = part.count() + found
            elif part.keep is not True:
                found = as_tensor(part.keep).to(torch.int64) + found
        return found

    @property
    def ragged_axis(self) -> int | None:
        """The axis on which the items differ in size; None where they have one shape."""
        return next((part.axis for part in self.parts if part.axis is not None), None)

    def joined_with_sizes(self, axis: int) -> tuple[Tensor, Tensor]:
        """The items, joined on an axis, and the size of each there, an int64 tensor of shape (count,)."""
        if any(part.keep is not True for part in self.parts):
            raise refusal("values decide whether a tensor is in a list of tensors of different sizes; use torch.cat.")
        return self.concatenated(axis), torch.cat([part.sizes_on(axis) for part in self.parts])

    def at(self, number: Any) -> Tensor:
        """The item of a number, a Python integer or an int64 tensor of shape (), where the sizes of items differ."""
        axis = self.ragged_axis or 0
        whole, sizes = self.joined_with_sizes(axis)
        end = sizes.cumsum(0)[number]
        item: Tensor = whole[(slice(None),) * axis + (slice(end - sizes[number], end),)]
        return item

    def stacked(self) -> Tensor:
        """The items, stacked on axis 0, as torch.stack demands of one shape."""
        axis = self.ragged_axis
        if axis is not None:
            whole, of_each = self.joined_with_sizes(axis)
            joined: Tensor = whole.unflatten(axis, (of_each.shape[0], -1))
            return joined.movedim(axis, 0)
        pieces = [part.value if part.is_several else as_tensor(part.value).unsqueeze(0) for part in self.parts]
        whole = torch.cat(pieces) if len(pieces) > 1 else pieces[0]
        if all(part.keep is True for part in self.parts):
            return whole
        sizes = (piece.shape[0] for piece in pieces)
        return whole.index_select(0, _kept(self.parts, sizes))

    def concatenated(self, dim: int = 0) -> Tensor:
        """The items, joined on one of their axes."""
        first = self.parts[0].value
        is_stacked = self.parts[0].is_several and self.parts[0].axis is None
        axis = dim % (first.dim() - 1 if is_stacked else first.dim())
        if self.ragged_axis not in (None, axis):  # of one shape then, as torch.cat demands
            return Rows([Part(self.stacked(), is_several=True)]).concatenated(dim)
        pieces = [_joined(part, axis) for part in self.parts]
        whole = torch.cat(pieces, axis) if len(pieces) > 1 else pieces[0]
        if all(part.keep is True for part in self.parts):
            return whole
        return whole.index_select(axis, _kept(self.parts, (piece.shape[axis] for piece in pieces)))

    def padded(self, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
        """Does torch.nn.utils.rnn.pad_sequence: the items stacked, padded to the longest one on their first axis."""
        whole, sizes = self.joined_with_sizes(0)
        padding = whole.new_full((1, *whole.shape[1:]), padding_value)
        length: Any = sizes.max()
        place = torch.arange(length).unsqueeze(0)
        if padding_side == "left":
            place = place - (length - sizes).unsqueeze(1)
        is_inside = (place >= 0) & (place < sizes.unsqueeze(1))
        cells = (sizes.cumsum(0) - sizes).unsqueeze(1) + place
        made = torch.cat([whole, padding])[torch.where(is_inside, cells, as_tensor(whole.shape[0]))]
        return made if batch_first else made.transpose(0, 1)

    def last(self) -> Tensor:
        """The last item; zeros where there is none."""
        rows = self.stacked()
        return torch.cat([rows.new_zeros((1, *rows.shape[1:])), rows])[-1]

    # What Python asks of a list; an answer that is no tensor is a decision, which the log of decisions sees

    def __len__(self) -> int:
        return int(self.count_items())

    def __bool__(self) -> bool:
        return bool(self.count_items() > 0)

    def __iter__(self) -> Iterator[Any]:
        if self.ragged_axis is None:
            return iter(self._items())
        _, sizes = self.joined_with_sizes(self.ragged_axis)  # as many as the example has
        return (self.at(number) for number, _ in enumerate(sizes))

    def __reversed__(self) -> Iterator[Any]:
        return iter(self.reversed())

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            if (place.start, place.stop, place.step) == (None, None, -1):
                return self.reversed()
            if self.ragged_axis is not None:
                raise refusal("a slice is taken of a list of tensors of different sizes; slice what it is made of.")
            return Rows([Part(self._items()[place], is_several=True)])
        return self._items()[place] if self.ragged_axis is None else self.at(place)

    def _items(self) -> Tensor:
        """The items, stacked; in Python they are the tensors that the list was given."""
        return stand_for(self.stacked(), [part.value for part in self.parts])

    def __add__(self, other: Any) -> Any:
        made = self.copy()
        made.extend(other)
        return made

    def __radd__(self, other: Any) -> Any:
        made = Rows(map(Part, other))
        made.extend(self)
        return made

    def __eq__(self, other: object) -> Any:
        """Whether it is itself, or the empty list: a boolean tensor of shape ()."""
        if self is other:
            return True
        if not isinstance(other, list):
            return NotImplemented  # no list is equal to it, but what stands for one answers itself
        return self.count_items() == 0 if not isinstance(other, Rows) and not len(other) else self._refuse()

    def __ne__(self, other: object) -> Any:
        return ~as_tensor(self == other)

    __hash__ = None

    def _refuse(self, *_: Any) -> Any:
        raise refusal("a list whose length depends on the inputs is used in a way that no tensor can stand for.")

    __setitem__ = __contains__ = pop = remove = index = sort = clear = _refuse  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __imul__ = _refuse


def _flatten_log(log: AppendLog) -> tuple[list[Any], Any]:
    return [*values_of(log.parts), log.last, log.length], log


def _unflatten_log(values: Iterable[Any], log: AppendLog) -> AppendLog:
    *values, last, length = values
    return log.with_parts(with_values(log.parts, values), last, length)


def _flatten_rows(rows: Rows) -> tuple[list[Any], Any]:
    return values_of(rows.parts), rows.parts


def _unflatten_rows(values: Iterable[Any], parts: list[Part]) -> Rows:
    return Rows(with_values(parts, list(values)))


def values_of(parts: Iterable[Part]) -> list[Any]:
    """The values in parts, in order."""
    return [x for part in parts for x in (part.value, part.keep, part.sizes)]


def with_values(parts: list[Part], values: list[Any]) -> list[Part]:
    """The parts with other values, in the order of `values_of`."""
    found = (values[3 * n : 3 * n + 3] for n in range(len(parts)))
    return [
        replace(part, value=value, keep=keep, sizes=sizes)
        for part, (value, keep, sizes) in zip(parts, found, strict=True)
    ]


register_pytree_node(AppendLog, _flatten_log, _unflatten_log)
register_pytree_node(Rows, _flatten_rows, _unflatten_rows)


def _known(sizes: Tensor | None) -> Tensor:
    if sizes is None:
        raise refusal("a loop of varying length appends tensors of different sizes, which only torch.cat can join.")
    return sizes


def _joined(part: Part, axis: int) -> Tensor:
    """The items of a part, joined on one of their axes."""
    value: Tensor = part.value
    return value.movedim(0, axis).flatten(axis, axis + 1) if part.is_several and part.axis is None else value


def _kept(parts: Iterable[Part], sizes: Iterable[Any]) -> Tensor:
    """The places of those rows that are in a list, of parts that have so many rows each."""
    flags = []
    for part, size in zip(parts, sizes, strict=True):
        is_flagged = isinstance(part.keep, Tensor)
        flags.append(part.keep.reshape(1).expand(size) if is_flagged else torch.ones(size, dtype=torch.bool))
    return torch.cat(flags).nonzero().squeeze(1)


def parts_of(items: Any) -> list[Part] | None:
    """A list as parts; None for anything else."""
    if isinstance(items, _Parts):
        return items.parts
    return [Part(item) for item in items] if type(items) is list else None


def stack_rows(rows: Rows, dim: int = 0) -> Tensor:
    """Does torch.stack."""
    whole = rows.stacked()
    return whole.movedim(0, dim) if dim else whole


def concatenate_rows(rows: Rows, dim: int = 0) -> Tensor:
    """Does torch.cat, whose result is a tensor of its own: items are views of what the list holds."""
    whole = rows.concatenated(dim)
    return whole if rows.ragged_axis is None else whole.clone()


def _stack_as_rows(rows: Rows) -> Tensor:
    """Does torch.vstack, which makes a row of a number or a vector."""
    whole = rows.stacked()
    return whole.reshape(whole.shape[0], -1) if whole.dim() < 3 else rows.concatenated()


_ROW_FUNCTIONS: dict[Any, Callable[..., Tensor]] = {
    torch.stack: stack_rows,
    **dict.fromkeys((torch.vstack, torch.row_stack), _stack_as_rows),
    internals.pad_sequence(): Rows.padded,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), concatenate_rows),
}


class RowStacker(Watcher):
    """Lets torch.stack, torch.cat and pad_sequence accept these lists."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is one of these functions, of such a list."""
        return func in _ROW_FUNCTIONS and isinstance(args[0] if args else kwargs.get("tensors"), Rows)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Stacks, concatenates or pads the list."""
        options = dict(kwargs)
        rows = args[0] if args else options.pop("tensors")
        if options.pop("out", None) is not None:
            raise refusal("a list whose length depends on the inputs is joined into a tensor that is there (out=).")
        if "axis" in options:  # numpy's word, which torch takes too
            options["dim"] = options.pop("axis")
        return _ROW_FUNCTIONS[func](rows, *args[1:], **options)

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""
