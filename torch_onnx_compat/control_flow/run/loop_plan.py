"""Plans a loop that runs in the file, and makes the ONNX Loop or Scan of it, as each exporter wants it.

The loop carries tensors from round to round. An exit becomes one more carried value, whether to go on. A list that
the loop appends to becomes a tensor with one more axis.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.control_flow.run.aliases import pause_watch, present_aliases, shares_with_written, stand_for
from torch_onnx_compat.control_flow.run.branch import NoConditional
from torch_onnx_compat.control_flow.run.guard import refuse_shared
from torch_onnx_compat.control_flow.run.lifting import clone_arguments, note_made
from torch_onnx_compat.control_flow.run.lists import AppendLog, Part, Rows, parts_of
from torch_onnx_compat.control_flow.run.refusal import here
from torch_onnx_compat.control_flow.run.rounds import Result, Round, flatten_values, unflatten_values
from torch_onnx_compat.control_flow.run.session import Session, as_tensor
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.places import short
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import without_watchers

MOST_ROUNDS = 2**12
"""Rounds of a ``while`` without a bound, up to which it is waited for its end on the example."""


@dataclass
class LoopPlan:
    """The tensors that a loop carries, writes to and reads, and the calls that make the loop."""

    session: Session
    one: Round
    initial: dict[str, Any]
    trial: Result
    originals: dict[int, Tensor]
    """The tensors that the names hold before the loop, by the identity of their copies in `initial`."""
    ragged: dict[str, int] = field(default_factory=dict)
    """By list: the axis on which what the rounds append to it differs in size."""

    def __post_init__(self) -> None:
        self.structure, before = flatten_values(self.initial)
        found, news = flatten_values({**self.initial, **self.trial.values})
        if found != self.structure:
            raise NoConditional("what it carries from round to round changes its structure")
        for old, new in zip(before, news, strict=True):
            if old.dtype != new.dtype or old.dim() != new.dim():
                raise NoConditional(f"a tensor that it carries changes from {_kind(old)} to {_kind(new)}")
        mine = {id(tensor) for tensor in before}
        same = {id(old) for old, new in zip(before, news, strict=True) if old is new}
        unchanged = same - set(self.trial.writes)
        self.fixed = [tensor if id(tensor) in unchanged else None for tensor in before]
        self.carried = [tensor for tensor, fixed in zip(before, self.fixed, strict=True) if fixed is None]
        pairs = zip(before, news, self.fixed, strict=True)
        self.growing = [dims_that_differ(old, new) for old, new, fixed in pairs if fixed is None]
        if any(identity in mine and identity not in same for identity in self.trial.writes):
            raise NoConditional("it writes in place into a tensor and then puts another in its place")
        outside = {**self.trial.outside, **{id(tensor): tensor for tensor in before}}
        self.written = [outside[identity] for identity in self.trial.writes if identity not in mine]
        for identity in self.trial.writes:
            original = self.originals.get(identity, outside[identity])
            refuse_shared(original)
            if identity in self.originals and id(original) in self.trial.outside:
                raise NoConditional("it writes in place into a tensor that it also reads under another name")
        known = {id(tensor) for tensor in (*self.carried, *self.written)}
        read = (tensor for identity, tensor in self.trial.outside.items() if identity not in known)
        self.read = self.session.fixed_last(read)
        self.appended = {name: _form(log) for name, log in self.trial.rows.items()}
        self._after = [tensor for tensor, fixed in zip(news, self.fixed, strict=True) if fixed is None]

    def run_round(self, number: Tensor | None, tensors: tuple[Tensor, ...]) -> tuple[Any, list[Tensor], list[Tensor]]:
        """Runs a round on other tensors; returns whether to go on, the carried tensors, and the appended ones."""
        carried, written, read = self._split(tensors)
        carried = [tensor.clone() for tensor in carried]
        copies = [tensor.clone() for tensor in written]
        outside = [*zip(self.written, copies, strict=True), *zip(self.read, read, strict=True)]
        result = self.one(number, self._values(carried), {id(old): (old, new) for old, new in outside}, carried)
        if result.outside:
            raise NoConditional("its rounds read different tensors")
        _, after = flatten_values({**self.initial, **result.values})
        news = [tensor for tensor, fixed in zip(after, self.fixed, strict=True) if fixed is None]
        states = [result.writes.get(id(old), (copy, copy))[1] for old, copy in zip(self.written, copies, strict=True)]
        rows = self._rows_of(result)
        if {name: _form(log) for name, log in result.rows.items()} != self.appended:
            raise NoConditional("it appends a different number of items in different rounds")
        return result.go, [*news, *states], rows

    def _values(self, carried: list[Tensor], originals: Mapping[int, Tensor] | None = None) -> dict[str, Any]:
        """The values of the names, from the carried tensors; other values are those before the loop.

        Args:
            carried: These tensors.
            originals: By identity, what the copies are of that the rounds have in place of the others.
        """
        moving = iter(carried)
        known = originals or {}
        tensors = [next(moving) if fixed is None else known.get(id(fixed), fixed) for fixed in self.fixed]
        return unflatten_values(self.structure, iter(tensors), self.initial)

    def _split(self, tensors: tuple[Tensor, ...]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        first, second = len(self.carried), len(self.carried) + len(self.written)
        return list(tensors[:first]), list(tensors[first:second]), list(tensors[second:])

    @property
    def count(self) -> int:
        """How many tensors the loop carries."""
        return len(self.carried) + len(self.written)

    # The two kinds of loop

    def for_loop(self, length: Any) -> dict[str, Any]:
        """Makes a loop whose number of rounds is known before its first round; returns the values of its names."""
        state = [*self.carried, *self.written]
        rows = self._rows_of(self.trial)

        def body(number: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
            _, news, appended = self.run_round(number, tensors)
            return *news, *appended

        if is_tracing():
            if not state and not rows:
                raise NoConditional("nothing that it computes is left after it, unless it writes into items of a list")
            made = self._script_loop("for", body, as_tensor(length), [], [*state, *self.read], rows)
        else:
            self._refuse_joins()
            state, read, numbers = clone_arguments(state), clone_arguments(self.read), torch.arange(length)
            with without_watchers() as under_watchers:
                made = internals.call_scan(under_watchers(_clone_results(body)), [numbers], state, read)
        return self._values_after(made, by_value=self.session.from_data(length))

    def while_loop(self, go: Tensor, number: Tensor | None, length: Any) -> dict[str, Any]:
        """Makes a loop that goes on while its rounds say so, up to `length` rounds; returns the values of its names."""
        ahead = [] if number is None else [number]
        state = [*self.carried, *self.written]
        read = list(self.read) if length is None else [*self.read, as_tensor(length)]
        rows = self._rows_of(self.trial)

        def body(*tensors: Tensor) -> tuple[Tensor, ...]:
            if number is None or length is None:
                on, news, appended = self.run_round(None, tensors)
                return as_tensor(on), *news, *appended
            on, news, appended = self.run_round(tensors[0], tensors[1:-1])
            following = tensors[0] + 1
            return as_tensor(self.session.condition(on)) & (following < tensors[-1]), following, *news, *appended

        if is_tracing():
            made = self._script_loop("while", body, go, ahead, [*state, *read], rows)
        else:
            made = self._call_while(body, [go, *ahead, *state], read, rows, length)
        return self._values_after(made[len(ahead) :], by_value=True)

    def _call_while(
        self, body: Callable[..., Any], state: list[Tensor], read: list[Tensor], rows: list[Tensor], length: Any
    ) -> list[Tensor]:
        """Calls torch.while_loop; what it appends is written to tensors with a row for each round that there may be.

        Args:
            body: Takes the carried tensors but the first, then the read ones; returns the carried ones and its rows.
            state: The carried tensors: whether there is a round, the number of the round if there is one, the others.
            read: Those that are only read.
            rows: Like those that a round appends.
            length: How many rounds there may be; None where nobody knows.

        Returns:
            The carried tensors but the first, and the appended ones with a row for each round.
        """
        self._refuse_joins()
        if rows and length is None:
            raise NoConditional("it appends to a list and has no bound, without which torch.while_loop cannot")
        count = len(state) - 1
        stores = [row.new_zeros((length, *row.shape)) for row in rows]

        def write(*tensors: Tensor) -> tuple[Tensor, ...]:
            carried, stored, others = tensors[:count], tensors[count : count + len(rows)], tensors[count + len(rows) :]
            made = body(*carried, *others)
            appended = zip(stored, made[count + 1 :], strict=True)
            written = (torch.index_put(to, (carried[0].reshape(1),), row.unsqueeze(0)) for to, row in appended)
            return *made[: count + 1], *written

        given, others = clone_arguments([*state, *stores]), clone_arguments(read)
        with without_watchers() as under_watchers:
            made = internals.call_while_loop(under_watchers(_clone_results(write)), given, others)[1:]
        note_made(made)
        for place in range(count, len(made)):
            rounds = torch.arange(made[place].shape[0]) < made[0]
            made[place] = made[place].index_select(0, rounds.nonzero().squeeze(1))
        return made

    def _values_after(self, made: list[Tensor], *, by_value: bool) -> dict[str, Any]:
        """The values of the names after the loop, from the tensors that it returns.

        Args:
            made: These tensors.
            by_value: Whether values decide how many rounds there are.
        """
        note_made(made)
        carried, written, rows = self._split(tuple(made))
        noted = (*self._after, *self._items_of_a_round(), *self.carried, *self.originals.values())
        marks = {id(tensor): present_aliases().mark_of(tensor) for tensor in noted}
        for tensor, value in zip(self.written, written, strict=True):
            self._write(tensor, value)
        carried = self._carried_after(carried, marks, by_value=by_value)
        self.session.note_data_dims(carried, self.growing)
        after = self._values(carried, self.originals)
        items = iter(rows)
        for name, (flags, _, _) in self.appended.items():
            before = self.one.scope.get(name)
            after[name] = self._longer(name, before, items, marks, by_value=by_value) if flags else before
        return after

    def _items_of_a_round(self, name: str | None = None) -> list[Tensor]:
        """The tensors that the trial appended to a list, or to all."""
        logs = self.trial.rows.values() if name is None else [self.trial.rows[name]]
        return [part.value for log in logs for part in log.parts if isinstance(part.value, Tensor)]

    def _carried_after(self, made: list[Tensor], marks: Mapping[int, str], *, by_value: bool) -> list[Tensor]:
        """The carried tensors after the loop: those that the rounds wrote to, and new ones.

        Args:
            made: What the loop made of them.
            marks: What was out of date after the trial, by identity; the writes after the loop change nothing of that.
            by_value: Whether values decide how many rounds there are; sizes are tried at which there is none.
        """
        after = []
        for tensor, last, value in zip(self.carried, self._after, made, strict=True):
            original = self.originals.get(id(tensor), tensor)
            if id(tensor) in self.trial.writes:
                after.append(self._write(original, value))
            else:
                sides = [last, original] if by_value else [last]
                after.append(stand_for(value, sides, next(filter(None, (marks[id(side)] for side in sides)), "")))
        return after

    def _longer(
        self, name: str, before: Any, made: Iterator[Tensor], marks: Mapping[int, str], *, by_value: bool
    ) -> Any:
        """A list with what the loop appended to it."""
        flags, in_front, _ = self.appended[name]
        joined = self._join_rows(flags, in_front, made)
        sizes = next(made) if self._has_sizes(name) else None
        rest = Part(joined, is_several=True, axis=self._axis(name), sizes=sizes)
        items = self._items_of_a_round(name)
        stand_for(rest.value, items, next(filter(None, (marks[id(item)] for item in items)), ""))
        if shares_with_written(items, self.trial.writes):  # later rounds wrote to the items of earlier ones
            present_aliases().mark(rest.value, short(*here()))
        if by_value:
            self.session.vary_size(rest.value)
        if isinstance(before, AppendLog):
            before.extend(Rows([rest]))
            return before
        parts = parts_of(before) or []
        return Rows([rest, *parts] if in_front else [*parts, rest])

    def _write(self, tensor: Tensor, value: Tensor) -> Tensor:
        """Writes into a tensor what it has after the loop."""
        present_aliases().write(tensor, short(*here()))
        return tensor.copy_(value)

    def _join_rows(self, flags: tuple[bool, ...], in_front: bool, tensors: Iterator[Tensor]) -> Tensor:
        """What the loop appended to a list, from the items of all its rounds; `flags` are those of `_form`."""
        found = [(next(tensors), next(tensors) if flagged else None) for flagged in flags]
        parts = [part for part, _ in found]
        if any(part.dim() != parts[0].dim() for part in parts):
            raise NoConditional("it appends tensors of different shapes")
        rest = _by_round(parts, in_front)
        if not any(flags):
            return rest
        every = next(keep for _, keep in found if keep is not None)
        keeps = _by_round([torch.ones_like(every) if keep is None else keep for _, keep in found], in_front)
        return rest.index_select(0, keeps.nonzero().squeeze(1))

    # Items of different sizes, and lists of items, are joined on an axis instead of stacked

    def _axis(self, name: str) -> int | None:
        """The axis on which the items that a loop appends to a list differ in size."""
        kinds = self.appended[name][2]
        return kinds[0].axis if len(kinds) == 1 and kinds[0].is_several else self.ragged.get(name)

    def _has_sizes(self, name: str) -> bool:
        """Whether a round also appends the size of each item on the axis on which they are joined."""
        kinds = self.appended[name][2]
        return self._axis(name) is not None and len(kinds) == 1 and (kinds[0].has_sizes or not kinds[0].is_several)

    def _rows_of(self, result: Result) -> list[Tensor]:
        """What a round appends: of each list the items, whether they are in it, and the sizes of joined ones."""
        found = []
        for name, log in result.rows.items():
            found += _tensors_of(log)
            axis = self._axis(name)
            if axis is not None and self._has_sizes(name):
                found += [part.sizes_on(axis) for part in log.parts]
        return found

    def _joins(self) -> list[int | None]:
        """Of each tensor that a round appends: the axis on which those of all rounds are joined; None stacks them."""
        found: list[int | None] = []
        for name, (flags, in_front, kinds) in self.appended.items():
            own = self._axis(name)
            own = 0 if own is None and any(kind.is_several for kind in kinds) else own
            if own is not None and (len(flags) > 1 or any(flags) or in_front):
                raise NoConditional(f"it appends tensors of different sizes to {name!r}, and more than one in a round")
            found += [own for flag in flags for _ in range(1 + flag)]
            found += [0] * self._has_sizes(name)
        return found

    def _refuse_joins(self) -> None:
        if any(join is not None for join in self._joins()):
            raise NoConditional("it appends tensors of different sizes to a list, which torch's loops cannot")

    # TorchScript: the body is traced separately, and a scripted loop calls it

    def _script_loop(
        self,
        kind: str,
        body: Callable[..., tuple[Tensor, ...]],
        control: Tensor,
        ahead: list[Tensor],
        tensors: list[Tensor],
        rows: list[Tensor],
    ) -> list[Tensor]:
        numbers = [torch.zeros((), dtype=torch.int64)] if kind == "for" else []
        joins = self._joins()
        empty = [
            torch.empty_like(row).unsqueeze(0).narrow(0, 0, 0) if axis is None else row.narrow(axis, 0, 0)
            for row, axis in zip(rows, joins, strict=True)
        ]
        with without_tracing():
            examples = tuple(tensor.detach().clone() for tensor in (*numbers, *ahead, *tensors))
        dims = [*(frozenset[int]() for _ in (*numbers, *ahead)), *self.session.data_dims(tensors)]
        for place, own in enumerate(self.growing, len(numbers) + len(ahead)):
            dims[place] |= own

        def inner(*given: Tensor) -> tuple[Tensor, ...]:
            self.session.note_data_dims(given, dims)
            return body(*given)

        carried = len(examples) - len(tensors) + self.count
        inputs = carried + self.session.count_varying(tensors[self.count :])
        with self.session.inner_trace(inputs), without_tracing():
            function = torch.jit.trace(_unwrap_single(inner), examples, check_trace=False)
            internals.forget_sizes(function)
            loop = internals.script_loop(kind, function, len(ahead) + self.count, len(tensors) - self.count, joins)
        if kind == "while" and not _ends(function, control, examples, len(ahead) + self.count):
            if not self.session.surveying:
                raise NoConditional(f"it has not ended after {MOST_ROUNDS} rounds as the file would have them")
            control = torch.zeros((), dtype=torch.bool)  # a search takes the example's branches in each round
        for place, own in enumerate(self.growing):
            tensors[place] = functools.reduce(_of_some_size, own, tensors[place])
        made = loop(*clone_arguments([control, *ahead, *tensors]), *empty)
        return list(made) if isinstance(made, (tuple, list)) else [made]


class ItemForm(NamedTuple):
    """What an item that a round appends is, as its `Part` says."""

    is_several: bool
    axis: int | None
    has_sizes: bool


Form = tuple[tuple[bool, ...], bool, tuple[ItemForm, ...]]


def _form(log: AppendLog) -> Form:
    """Of each item that a round appends, whether values decide that; whether the list grows at its beginning; kinds."""
    kinds = tuple(ItemForm(part.is_several, part.axis, part.sizes is not None) for part in log.parts)
    return tuple(part.keep is not True for part in log.parts), log.in_front, kinds


def _tensors_of(log: AppendLog) -> list[Tensor]:
    """The items that a round appends, each with whether it does where values decide that."""
    if any(isinstance(part.value, Pair) for part in log.parts):
        raise NoConditional("it appends complex numbers to a list")
    pairs = ((part.value,) if part.keep is True else (part.value, part.keep) for part in log.parts)
    return [as_tensor(x) for pair in pairs for x in pair]


def _by_round(parts: list[Tensor], in_front: bool) -> Tensor:
    """Joins tensors, one for each item of a round with a row for each round: round by round, or the last one first."""
    parts = [part.flip(0) for part in parts] if in_front else parts
    return torch.stack(parts, 1).flatten(0, 1) if len(parts) > 1 else parts[0]


def _ends(body: Callable[..., Any], go: Tensor, examples: Sequence[Tensor], carried: int) -> bool:
    """Whether a loop ends on the example. The loop itself runs in C++, where nobody can interrupt it.

    Args:
        body: The traced round, which returns whether there is another, and the carried tensors.
        go: Whether there is a first round.
        examples: The tensors before the loop, first those that it carries.
        carried: How many these are.
    """
    state, read = examples[:carried], examples[carried:]
    with without_tracing(), pause_watch():
        for _ in range(MOST_ROUNDS):
            if not go:
                return True
            made = body(*state, *read)
            go, state = (made[0], made[1 : 1 + carried]) if carried else (made, state)
    return False


def _of_some_size(tensor: Tensor, dim: int) -> Tensor:
    """The same tensor, of a size that torch's exporter does not know: it takes a carried tensor to keep its size."""
    every = torch.ones(tensor.shape[dim], dtype=torch.bool).nonzero().squeeze(1)
    return tensor.index_select(dim, every)


def dims_that_differ(one: Tensor, other: Tensor) -> frozenset[int]:
    """The dimensions in which two tensors have different sizes now; none under torch.export, whose loops have none."""
    if not is_tracing():
        return frozenset()
    with without_tracing():
        sizes = zip(one.shape, other.shape, strict=False)
        return frozenset(dim for dim, (ours, theirs) in enumerate(sizes) if ours != theirs)


def _unwrap_single(body: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Any]:
    """The body, with a single result unwrapped: torch.jit.trace turns a tuple of one tensor into the tensor."""

    def run(*tensors: Tensor) -> Any:
        made = body(*tensors)
        return made[0] if len(made) == 1 else made

    return run


def _clone_results(body: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """The body, with its results cloned: torch's loops refuse results that are arguments."""
    return lambda *tensors: tuple(tensor.clone() for tensor in body(*tensors))


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} with {tensor.dim()} axes"
