"""Iterables whose length is known only when the file runs, and the lists that loops over them fill."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from torch_onnx_compat.control_flow.run.session import SYMBOLS, Session, as_tensor, refusal
from torch_onnx_compat.watch import Watcher


@dataclass(frozen=True)
class CountedItems:
    """Items by number; their count depends on the inputs."""

    length: Any
    """The count: a symbolic size, or an int64 tensor of shape ()."""
    at: Callable[[Tensor], Any]
    """Gives the item of a number, which is an int64 tensor of shape ()."""

    def __iter__(self) -> Any:
        raise refusal("a list is made of something whose length depends on the inputs; use a tensor, or a plain loop.")


def as_counted_items(session: Session, value: Any) -> CountedItems | None:
    """An iterable as counted items; None if its length cannot vary, or it is no iterable."""
    if isinstance(value, CountedItems):
        return value
    if isinstance(value, Rows):
        return as_counted_items(session, stack_rows(value))
    if isinstance(value, Tensor) and value.dim() and session.is_dynamic(value.shape[0]):
        return CountedItems(value.shape[0], lambda number: value[number])
    return None


# Stand-ins for the functions that make iterables


def _range(session: Session, function: Any, *args: Any) -> Any:
    if not any(session.is_dynamic(arg) for arg in args):
        return function(*args)
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    if isinstance(step, (Tensor, *SYMBOLS)):
        raise refusal("the step of a range depends on the inputs; use a fixed one.")
    length: Any = None
    if abs(step) == 1 and not isinstance(start, Tensor) and not isinstance(stop, Tensor):
        length = (stop - start) * step
    if not is_scannable(length):
        distance = as_tensor(stop) - as_tensor(start) if step > 0 else as_tensor(start) - as_tensor(stop)
        if abs(step) > 1:
            distance = torch.div(distance + (abs(step) - 1), abs(step), rounding_mode="floor")
        length = distance.clamp(min=0)

    def at(number: Tensor) -> Tensor:
        value = number if step == 1 else number * step
        return value if isinstance(start, int) and start == 0 else value + as_tensor(start)

    return CountedItems(length, at)


def is_scannable(length: Any) -> bool:
    """Whether a length is a symbolic size that is at least 1 if every dynamic axis is: a Scan needs one row."""
    if not isinstance(length, torch.SymInt) or has_free_unbacked_symbols(length):
        return False
    least = length.node.expr
    return bool(least.subs(dict.fromkeys(least.free_symbols, 1)) >= 1)


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
    if len(found) < len(known):
        raise refusal("something whose length depends on the inputs is zipped with something of fixed length.")
    lengths = [one.length for one in found]
    if any(isinstance(length, Tensor) for length in lengths):
        length = functools.reduce(torch.minimum, map(as_tensor, lengths))
    else:
        length = functools.reduce(torch.sym_min, lengths)
    return CountedItems(length, lambda number: tuple(one.at(number) for one in found))


def _unbind(session: Session, function: Any, tensor: Tensor, dim: int = 0) -> Any:
    if not session.is_dynamic(tensor.shape[dim]):
        return tensor.unbind(dim)
    return as_counted_items(session, tensor.movedim(dim, 0))


def _split(session: Session, function: Any, tensor: Tensor, size: Any, dim: int = 0) -> Any:
    if size != 1 or not session.is_dynamic(tensor.shape[dim]):
        return tensor.split(size, dim)
    return CountedItems(tensor.shape[dim], lambda number: tensor.index_select(dim, number.reshape(1)))


def _list(session: Session, function: Any, *args: Any) -> Any:
    known = as_counted_items(session, args[0]) if len(args) == 1 else None
    return known if known is not None else function(*args)


STAND_INS: dict[Any, Callable[..., Any]] = {
    range: _range,
    enumerate: _enumerate,
    zip: _zip,
    list: _list,
    torch.unbind: _unbind,
    torch.split: _split,
}

METHODS: dict[str, Callable[..., Any]] = {"unbind": _unbind, "split": _split}


# Lists that a loop fills


@dataclass
class AppendLog:
    """Replaces a list in a round of a loop: records the appended items, and cannot be read."""

    items: list[Any] = field(default_factory=list)

    def append(self, item: Any) -> None:
        """Like list.append."""
        self.items.append(item)

    def extend(self, items: Any) -> None:
        """Like list.extend."""
        self.items.extend(items)

    def copy(self) -> AppendLog:
        """A copy, for a branch that may not be taken."""
        return AppendLog(list(self.items))

    def __getattr__(self, name: str) -> Any:
        raise refusal(f"a list that a loop of varying length appends to is used in it otherwise ({name}).")

    def _refuse_read(self, *_: Any) -> Any:
        raise refusal(
            "a list that a loop of varying length appends to is read in it; keep what the next round needs in a "
            "variable of its own."
        )

    __getitem__ = __setitem__ = __len__ = __iter__ = __contains__ = __bool__ = _refuse_read


class Rows(list[Any]):
    """A list of tensors of one shape whose length depends on the inputs; torch.stack and torch.cat accept it.

    Args:
        first: The items that were in the list before the loop.
        rest: The other items, stacked.
    """

    def __init__(self, first: list[Any], rest: Tensor) -> None:
        super().__init__()  # empty: torch's C++ argument parser reads a list's items past these methods
        self.first, self.rest = first, rest

    def _refuse_read(self, *_: Any) -> Any:
        raise refusal("a list whose length depends on the inputs is used otherwise than by torch.stack or torch.cat.")

    __getitem__ = __setitem__ = __len__ = __iter__ = __contains__ = __bool__ = _refuse_read
    append = extend = insert = pop = __add__ = __reversed__ = _refuse_read


def stack_rows(rows: Rows, dim: int = 0) -> Tensor:
    """Does torch.stack."""
    whole = torch.cat([torch.stack(rows.first), rows.rest]) if rows.first else rows.rest
    return whole.movedim(0, dim) if dim else whole


def concatenate_rows(rows: Rows, dim: int = 0) -> Tensor:
    """Does torch.cat."""
    axis = dim % (rows.rest.dim() - 1)
    rest = rows.rest.movedim(0, axis).flatten(axis, axis + 1)
    return torch.cat([*rows.first, rest], axis) if rows.first else rest


_ROW_FUNCTIONS: dict[Any, Callable[..., Tensor]] = {
    torch.stack: stack_rows,
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), concatenate_rows),
}


class RowStacker(Watcher):
    """Lets torch.stack and torch.cat accept the lists that loops filled."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is one of these functions, of such a list."""
        return func in _ROW_FUNCTIONS and isinstance(args[0] if args else kwargs.get("tensors"), Rows)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Stacks or concatenates the list."""
        kwargs = dict(kwargs)
        rows = args[0] if args else kwargs.pop("tensors")
        return _ROW_FUNCTIONS[func](rows, *args[1:], **({"dim": kwargs["dim"]} if "dim" in kwargs else {}))

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""


def length(rows: Rows) -> Any:
    """``len()``."""
    size = rows.rest.shape[0]
    return size + len(rows.first) if rows.first else size
