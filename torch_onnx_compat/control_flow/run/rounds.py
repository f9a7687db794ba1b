"""One round of a loop as a function of tensors: finds out what it carries, reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.lower.loop_form import ITEM
from torch_onnx_compat.control_flow.run.aliases import Item, note_item
from torch_onnx_compat.control_flow.run.belongings import Attribute
from torch_onnx_compat.control_flow.run.branch import Branch, NoConditional, flatten, unflatten
from torch_onnx_compat.control_flow.run.guard import WriteLog, attempt
from torch_onnx_compat.control_flow.run.join import UNDEFINED, kind_of
from torch_onnx_compat.control_flow.run.lifting import Lifting, Table, present
from torch_onnx_compat.control_flow.run.lists import AppendLog, RowStacker
from torch_onnx_compat.control_flow.run.number_kinds import is_number
from torch_onnx_compat.control_flow.run.session import Session, as_tensor
from torch_onnx_compat.control_flow.run.slots import Slots
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import Watcher, number_no_rounds


class ItemPicker(Watcher):
    """Reads and writes items by a number that is a tensor, without converting it to a Python number.

    Args:
        is_trial: Whether the items stand for those of a loop that may have no round: then there may be no such item.
    """

    def __init__(self, *, is_trial: bool) -> None:
        super().__init__()
        self._is_trial = is_trial
        self._next: dict[int, tuple[Tensor, Any]] = {}
        """By identity of n + 1: that tensor, and n; it recognises the slice ``x[n : n + 1]``."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call indexes, or adds 1 to a tensor; `watch` handles x[i], x[:, i] and x[i : i + 1]."""
        if func in _ADDITIONS:
            return len(args) == 2 and type(args[1]) is int and args[1] == 1 and not args[0].dim()
        return func in (Tensor.__getitem__, Tensor.__setitem__)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes one call, as Gather or Where if a number is a tensor."""
        if func in _ADDITIONS:
            result = self.pass_on(func, args, kwargs)
            self._next[id(result)] = result, args[0]
            return result
        if isinstance(args[0], Pair):
            parts = [self.watch(func, part, kwargs) for part in _parts_of_call(*args)]
            return None if func is Tensor.__setitem__ else Pair(*parts)
        if func is Tensor.__getitem__ and isinstance(args[1], slice) and self._is_one(args[1]):
            return self._item(args[0], 0, args[1].start.reshape(1), ())
        return self._pick(func, args, kwargs) if len(_numbers(args[1])) == 1 else self.pass_on(func, args, kwargs)

    def _is_one(self, part: slice) -> bool:
        """Whether a slice is ``n : n + 1``; n is then inside the tensor, as the number of a round."""
        _, number = self._next.get(id(part.stop), (None, None))
        return number is not None and number is part.start and part.step in (None, 1)

    def _select(self, tensor: Tensor, axis: int, number: Tensor) -> Tensor:
        if not self._is_trial:
            return torch.index_select(tensor, axis, number)
        sizes = list(tensor.shape)
        size, sizes[axis] = as_tensor(sizes[axis], number), 1
        # The file has the shape of what a round yields from the trial; a row more is there where all others are not.
        tensor = torch.cat([tensor, tensor.new_zeros(sizes)], axis)
        return torch.index_select(tensor, axis, torch.minimum(number, size))

    def _pick(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor, key = args[0], args[1] if isinstance(args[1], tuple) else (args[1],)
        place = _numbers(args[1])[0]
        number = key[place]
        axis = place if Ellipsis not in key[:place] else tensor.dim() - (len(key) - place)
        size = tensor.shape[axis]
        number = torch.where(number < 0, number + as_tensor(size, number), number).reshape(1)
        if func is Tensor.__getitem__:
            return self._item(tensor, axis, number, (*key[:place], 0, *key[place + 1 :]))
        if any(part != slice(None) and part is not Ellipsis for k, part in enumerate(key) if k != place):
            return self.pass_on(func, args, kwargs)
        part = torch.index_select(tensor, axis, number)
        value = as_tensor(args[2], tensor).to(tensor.dtype).expand_as(part.select(axis, 0)).unsqueeze(axis)
        _put(tensor, axis, number, value)
        return None

    def _item(self, tensor: Tensor, axis: int, number: Tensor, index: tuple[Any, ...]) -> Tensor:
        """An item, or a part of it; it is a copy, which is held equal to what it is a part of."""
        row = self._select(tensor, axis, number)
        found: Tensor = row[index] if index else row

        def take() -> None:
            row.copy_(self._select(tensor, axis, number))

        note_item(found, Item(tensor, partial(_put, tensor, axis, number, row), take, lambda: present(tensor)._version))
        return found


def _put(tensor: Tensor, axis: int, number: Tensor, row: Tensor) -> None:
    """Writes a row into a tensor, of 1 along the axis; none if there is no such row."""
    shape = [1] * tensor.dim()
    shape[axis] = -1
    places = torch.arange(tensor.shape[axis], device=tensor.device).reshape(shape)
    tensor.copy_(torch.where(places == number, row, tensor))


def _parts_of_call(pair: Pair, key: Any, *values: Any) -> list[tuple[Any, ...]]:
    """An index or a write of a complex tensor as those of its two parts."""
    imag = (torch.zeros_like(v) if isinstance(v, Tensor) and not v.is_complex() else v.imag for v in values)
    return [(pair.real, key, *(v.real for v in values)), (pair.imag, key, *imag)]


_ADDITIONS = (Tensor.add, Tensor.__add__, torch.add)


def _numbers(key: Any) -> list[int]:
    """Positions of 0-dimensional tensors in an index of numbers and slices; empty if the index holds anything else."""
    parts = key if isinstance(key, tuple) else (key,)
    places = []
    for place, part in enumerate(parts):
        if isinstance(part, Tensor) and not part.dim() and part.dtype in (torch.int64, torch.int32):
            places.append(place)
        elif (not isinstance(part, (int, slice)) and part is not Ellipsis) or isinstance(part, bool):
            return []
    return places


@dataclass
class Result:
    """The result of a round."""

    go: Any
    values: dict[str, Any]
    rows: dict[str, AppendLog]
    """What it appended to lists."""
    writes: Table
    """By identity: a tensor from outside that the round wrote to, and its contents after it."""
    outside: dict[int, Tensor]
    bound: tuple[Attribute, ...]
    """Attributes of modules that the round bound; they are as before again."""


@dataclass
class Round:
    """The body of a loop.

    Attributes:
        session: Of the run.
        body: Takes an item and the values of names; returns whether to go on, and the values of `names`.
        names: The names that it carries from round to round.
        item: Gives the item of a number; None in a ``while``.
        test: Takes values of names; returns whether there is another round. None in a ``for``.
        scope: Values before the loop of `names` and of the other parameters of `body` and `test`.
        python_values: Values of names that are no tensors before a loop of one round. That round has them, whatever
            tensors are carried under the names: ``best is None or ...`` recognises the first round by them.
    """

    session: Session
    body: Callable[..., Any]
    names: tuple[str, ...]
    item: Callable[[Tensor], Any] | None
    test: Callable[..., Any] | None
    scope: dict[str, Any]
    python_values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self, number: Tensor | None, values: dict[str, Any], table: Table | None = None, own: Sequence[Tensor] = ()
    ) -> Result:
        """Runs one round.

        Args:
            number: Number of the round, shape (), int64.
            values: Values of the names; a list that is appended to is an `AppendLog`.
            table: Replacements of tensors from outside; None replaces each by a copy, as a trial.
            own: Tensors that the round may write to.
        """
        given = [*own, *([number] if number is not None else [])]
        lifting = Lifting(table, given)
        rows = {
            name: AppendLog((), values.get(last_of(name)), values.get(length_of(name)))
            for name, value in values.items()
            if isinstance(value, AppendLog)
        }
        scope = {**self.scope, **values, **rows, **self.python_values}
        log = WriteLog(own)

        def run() -> tuple[Any, dict[str, Any]]:
            if self.item is not None and number is not None:
                scope[ITEM] = self.item(number)
            go, *news = Branch(self.body, scope)()
            after = {
                name: log.separate(new, tree.tensors_in(values.get(name)))
                for name, new in zip(self.names, news, strict=True)
            }
            if self.test is not None:
                known = self.session.condition(go)
                again = Branch(self.test, {**scope, **after})()
                go = self.session.condition(again)
                if known is not True:
                    go = as_tensor(known) & as_tensor(go)
            return go, after

        with number_no_rounds(), RowStacker(), lifting, ItemPicker(is_trial=table is None and is_tracing()):
            outcome = attempt(Branch(run, scope), log, separates=False, apart_from=self.names)
        if outcome.error is not None:
            raise outcome.error
        if outcome.changed:
            raise NoConditional(f"{outcome.changed} is changed in it; move that out of the loop")
        go, after = outcome.value
        appended = {name: value for name, value in after.items() if isinstance(value, AppendLog)}
        for name, grown in appended.items():
            known = {last_of(name): grown.last, length_of(name): grown.length}
            after.update((one, value) for one, value in known.items() if one in values)
        kept = {name: value for name, value in after.items() if name not in appended}
        writes = {id(lifting.original_of(tensor)): (tensor, state) for tensor, state in outcome.writes.values()}
        return Result(
            go, tree.map_leaves(kept, lifting.original_of), appended, writes, lifting.outside, tuple(outcome.bound)
        )


def last_of(name: str) -> str:
    """The name under which a loop carries the last item of a list that it appends to."""
    return f"{name}[-1]"


def length_of(name: str) -> str:
    """The name under which it carries the list's length."""
    return f"len({name})"


def initial_value(name: str, old: Any, new: Any, *, starts: bool = False) -> Any:
    """The value of a name before the first round, converted to the type, shape and dtype of later rounds.

    Args:
        name: The name.
        old: Its value before the first round.
        new: Its value after it.
        starts: Whether the loop has one round, which all that follows comes after: a name may be None before it.

    Raises:
        NoConditional: It cannot be converted.
    """
    if old is new or isinstance(old, AppendLog):
        return old
    if starts and (old is None or (is_empty(old) and isinstance(new, Tensor) and new.dim() > 1)) and new is not None:
        old = UNDEFINED
    if _is_value(new) and (_is_value(old) or old is UNDEFINED):
        return _convert_like(old, as_tensor(new))
    if old is UNDEFINED:
        tensors: list[Tensor] = []
        structure = flatten(new, tensors)
        return unflatten(structure, iter([_convert_like(old, tensor) for tensor in tensors]))
    if type(old) is not type(new):
        raise NoConditional(f"{name!r} is a {kind_of(old)} before the loop and a {kind_of(new)} after a round")
    if isinstance(old, (dict, list, tuple, Pair)):
        return _initial_items(name, old, new, starts=starts)
    if old == new:
        return old
    raise NoConditional(f"{name!r} is a {kind_of(old)} that changes in the loop, which is no tensor")


def is_empty(value: Any) -> bool:
    """Whether a value is ``torch.zeros(0)`` or several such, with which code begins whose tensors have no shape yet."""
    if type(value) in (list, tuple):
        return bool(value) and all(map(is_empty, value))
    with without_tracing():
        return isinstance(value, Tensor) and value.dim() == 1 and type(value.shape[0]) is int and not value.shape[0]


def numbers_among(old: Any, initial: Any) -> Iterator[tuple[Any, Tensor]]:
    """The numbers in the value of a name before a loop, each with the tensor that the loop carries in its place."""
    if isinstance(initial, Tensor):
        if is_number(old):
            yield old, initial
    elif isinstance(old, (list, tuple)) and isinstance(initial, (list, tuple)) and not isinstance(old, Slots):
        for a, b in zip(old, initial, strict=True):
            yield from numbers_among(a, b)
    elif isinstance(old, dict) and isinstance(initial, dict):
        for key in old:
            yield from numbers_among(old[key], initial[key])


def _initial_items(name: str, old: Any, new: Any, *, starts: bool) -> Any:
    if isinstance(old, Slots):
        return old.like(new) if old.value is None else old
    if isinstance(old, Pair):
        parts = zip((old.real, old.imag), (new.real, new.imag), strict=True)
        return Pair(*(initial_value(name, a, b, starts=starts) for a, b in parts))
    if len(old) != len(new) or (isinstance(old, dict) and list(old) != list(new)):
        raise NoConditional(f"{name!r} has {len(old)} items before the loop and others after a round")
    if isinstance(old, dict):
        return type(old)((key, initial_value(name, old[key], new[key], starts=starts)) for key in old)
    items = [initial_value(name, a, b, starts=starts) for a, b in zip(old, new, strict=True)]
    return type(old)(*items) if hasattr(old, "_fields") else type(old)(items)


def _is_value(value: Any) -> bool:
    return isinstance(value, Tensor) or is_number(value)


def _convert_like(old: Any, new: Tensor) -> Tensor:
    if old is UNDEFINED:
        return torch.zeros_like(new)
    if is_number(old) or (is_tracing() and not old.dim() and new.dim()):
        value = as_tensor(old, new)
        wanted = torch.promote_types(value.dtype, new.dtype) if value.dtype != new.dtype else new.dtype
        if wanted != new.dtype:
            raise NoConditional(f"a number of dtype {value.dtype} becomes {new.dtype} in the loop")
        return value.to(new.dtype).expand_as(new).clone() if new.dim() else value.to(new.dtype)
    if old.dtype != new.dtype:
        raise NoConditional(f"a tensor is {old.dtype} before the loop and {new.dtype} after a round")
    if old.dim() != new.dim():
        raise NoConditional(f"a tensor has {old.dim()} axes before the loop and {new.dim()} after a round")
    tensor: Tensor = old
    return tensor


def flatten_values(values: dict[str, Any]) -> tuple[Any, list[Tensor]]:
    """Flattens the values of names; leaves out lists that are appended to."""
    tensors: list[Tensor] = []
    structure = {name: flatten(v, tensors) for name, v in values.items() if not isinstance(v, AppendLog)}
    return structure, tensors


def unflatten_values(structure: dict[str, Any], tensors: Iterator[Tensor], values: dict[str, Any]) -> dict[str, Any]:
    """The values with other tensors, in the order of `flatten_values`."""
    return {name: unflatten(structure[name], tensors) if name in structure else value for name, value in values.items()}
