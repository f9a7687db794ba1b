"""The state of one run of a rewritten model: its exporter, its sizes, and its decisions."""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.data_sizes import DataSizes
from torch_onnx_compat.backends.decisions import DecisionLog
from torch_onnx_compat.backends.trace_numbers import is_settled, sizes_are
from torch_onnx_compat.backends.trace_origins import asks_for_emptiness, depends_on, is_of_weights, origins
from torch_onnx_compat.backends.wide import Numbers, wide_numbers
from torch_onnx_compat.caller.reach import Reach
from torch_onnx_compat.catalogue.entry import Exporter
from torch_onnx_compat.control_flow.find.calls import CallSite
from torch_onnx_compat.control_flow.run.aliases import watch_aliases
from torch_onnx_compat.control_flow.run.cells import CellWriter
from torch_onnx_compat.control_flow.run.choices import Choices
from torch_onnx_compat.control_flow.run.lifting import present
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS, NumberKinds
from torch_onnx_compat.control_flow.run.raising import find_catcher
from torch_onnx_compat.control_flow.run.refusal import (
    EndlessRecursion,
    RefusedDecision,
    here,
    keep_refusals,
    place_in_model,
    refusal,
)
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.tracing import as_tensor as value_as_tensor
from torch_onnx_compat.tracing import inner_trace, is_tracing, recorded_value, without_tracing

Key = tuple[str, int, int, tuple[Any, ...]]
"""A decision of one run: file, line, its number among those of this line and part, and the part in which it is taken.

The number is the same in a run in which an earlier decision of the line has a known answer, and no branches.
"""


@dataclass
class Trial:
    """A loop in the file of which a round is tried: its file and line, and the number of the round."""

    place: tuple[str, int]
    number: Tensor | None = None
    counts: frozenset[str] = frozenset()
    """Names that are numbers before the loop, and after its first round where that is written for itself."""


@dataclass(eq=False)
class OpenLoop:
    """A loop that is unrolled beyond what its condition says, since other inputs may have more rounds."""

    place: tuple[str, int]
    is_over: bool = False
    """Whether this run's inputs have left it."""


@dataclass(kw_only=True)
class Session(NumberKinds):
    """The state of a run of a rewritten model; an exporter may run the model several times."""

    exporter: Exporter
    inputs: int
    """How many of the trace's inputs are inputs of the model; the others are parameters."""
    sizes_vary: bool = False
    surveying: bool = False
    """Whether this run is part of the search for decisions, which refuses nothing."""
    log: DecisionLog | None = None
    """The log of the run, which has the sizes that were read."""
    sizes: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    """The sizes that each decision of this run was computed from, unless it depends on data."""
    others: Sequence[Mapping[Key, tuple[int, ...]]] = ()
    """The same from runs at other sizes."""
    depths: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each line decides within its own branches now."""
    depths_of_both: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The same of those decisions of which both branches are run."""
    conflicts: dict[Key, str] = field(default_factory=dict)
    """Decisions whose branches cannot be joined by a mask at every size, and the reason."""
    alternatives: dict[Key, bool] = field(default_factory=dict)
    """Decisions between two ways to compute the same: True if the first works at every size, False if the second."""
    lone: dict[Key, bool] = field(default_factory=dict)
    """Decisions on sizes with one branch that fails at this run's sizes: True if the first one runs."""
    equal: dict[Key, bool] = field(default_factory=dict)
    """Decisions on sizes with two branches that run at this run's sizes: True if they compute the same."""
    value_sites: dict[tuple[types.CodeType, int, int], str] = field(default_factory=dict)
    """Decisions on values that this run met, each with its place; filled in a search."""
    loop_sites: dict[tuple[types.CodeType, int, int], str] = field(default_factory=dict)
    """Loops whose rounds values decide, each with its place; filled in a search."""
    unbounded: set[tuple[str, int]] = field(default_factory=set)
    """File and line of each loop that cannot be unrolled: a ``while`` that did not end, exits that cannot be joined,
    rounds that fail where the example has none."""
    peeled: Collection[tuple[str, int]] = ()
    """File and line of each loop in the file whose first round is written for itself."""
    ragged: dict[tuple[tuple[types.CodeType, int, int], str], int] = field(default_factory=dict)
    """By loop and list: the axis on which what its rounds append differs in size. A line may have several loops."""
    to_peel: set[tuple[str, int]] = field(default_factory=set)
    """Those of which this run found it, in a search."""
    open_calls: Collection[CallSite] = ()
    """The calls after which the rest of the function moves into two branches, if what they return has two kinds."""
    calls_to_open: set[CallSite] = field(default_factory=set)
    """Those that this run found, in a search."""
    on_the_way: list[tuple[Any, str]] = field(default_factory=list)
    """Values of two kinds that functions return, with the place, until they reach the statement after the call."""
    choices: Choices = field(default_factory=Choices)
    """The containers of which decisions of this run have chosen one."""
    trials: list[Trial] = field(default_factory=list)
    """The loops in the file of which a round is tried now."""
    open_loops: list[OpenLoop] = field(default_factory=list)
    """The loops that this run has begun to unroll, and not finished."""
    done: dict[str, str] = field(default_factory=dict)
    """How each decision was written, by place."""
    dropped: dict[str, None] = field(default_factory=dict)
    """Places of checks that the file does not make, as keys."""
    refusals: list[RefusedDecision] = field(default_factory=list)
    """What this run refused, the first one first; the model may have caught it."""
    reach: Reach | None = None
    """What the model's code can write to outside of its modules."""
    _seen: dict[tuple[Any, ...], Counter[tuple[tuple[str, int], int]]] = field(default_factory=dict)
    """By the part of a decision that runs: how often each place was met in it."""
    _within: tuple[Any, ...] = ()
    """The part that runs, as a key and a number; empty outside of all."""
    _classes: dict[int, tuple[Any, type[Any]]] = field(default_factory=dict)
    """By identity: modules and objects whose class was exchanged, and their own class."""

    def begin(self) -> None:
        """Starts a run."""
        self._seen.clear()
        self.refusals.clear()
        self.open_loops.clear()
        self.on_the_way.clear()
        self.choices.clear()
        self.numbers.clear()
        self.unknown_kinds.clear()
        self.sizes = {}

    @contextmanager
    def inner_trace(self, inputs: int) -> Iterator[None]:
        """While active, decisions are those of a nested trace, which has inputs of its own.

        Args:
            inputs: How many of them differ between runs of the file; those behind them are the same in every run.
        """
        before, self.inputs = self.inputs, inputs
        numbers, self.numbers = self.numbers, Numbers()
        log = self.log or DecisionLog(inputs)
        outer = log.inputs, log.data_sizes
        log.inputs, log.data_sizes = inputs, DataSizes(inputs)
        try:
            with CellWriter(), inner_trace(), self.unknown_kinds.inner_trace():
                yield
        finally:
            self.inputs, self.numbers = before, numbers
            log.inputs, log.data_sizes = outer

    def end(self) -> None:
        """Ends a run: modules and objects get their own classes back."""
        for owner, own in self._classes.values():
            owner.__class__ = own
        self._classes.clear()

    def watch_attribute(
        self, owner: Any, name: str, read: Callable[[Any, str], Any], write: Callable[[Any, str, Any], None]
    ) -> None:
        """Until the run ends, an attribute of a module or an object is read and written by two functions."""
        cls = type(owner)
        self._classes.setdefault(id(owner), (owner, cls))
        attribute = property(lambda self: read(self, name), lambda self, value: write(self, name, value))
        owner.__class__ = type(cls.__name__, (cls,), {"__module__": cls.__module__, name: attribute})

    def note_departure(self, value: Any, made_of: Iterable[Any]) -> None:
        """Notes a value of two kinds that a function returns, in place of those that it was made of."""
        parts = set(map(id, made_of))
        self.on_the_way = [one for one in self.on_the_way if id(one[0]) not in parts] + [(value, short(*here()))]

    def note_arrival(self, value: Any) -> None:
        """Notes what an open call has returned.

        Raises:
            RefusedDecision: A value of two kinds was returned to code that does not pass it on as it is.
        """
        if self.on_the_way and self.on_the_way[-1][0] is value:
            self.on_the_way.pop()
        self.check_arrivals()

    def check_arrivals(self) -> None:
        """Raises if a value of two kinds has gone astray."""
        if self.on_the_way and not self.surveying:
            raise refusal(
                "a decision depends on the inputs, and what the function returns is of one kind or another, such as "
                "None or a tensor; call it in a statement of its own, and not inside of map or a decorator.",
                self.on_the_way[-1][1],
            )

    def check_choices(self) -> None:
        """Raises if a container was changed that a decision has given a second name."""
        if not self.surveying:
            self.choices.check()

    def note_failed_rounds(self) -> None:
        """Notes at the end of a run the loop whose unrolled rounds failed where the run's inputs have no round."""
        self.unbounded.update(loop.place for loop in [one for one in self.open_loops if one.is_over][-1:])

    @property
    def is_endless(self) -> bool:
        """Whether a function was met that calls itself as often as the inputs decide."""
        return any(isinstance(error, EndlessRecursion) for error in self.refusals)

    @contextmanager
    def nest(self, counts: Counter[tuple[str, int]], key: Key, most: int) -> Iterator[None]:
        """Counts a decision while its branches run, and refuses one too many: where both run, recursion has no end."""
        line = key[:2]
        counts[line] += 1
        try:
            if counts[line] > most and self.depths_of_both[line]:
                why = "a function calls itself as often as the inputs decide; write it as a loop."
                raise refusal(why, short(*line), EndlessRecursion)
            yield
        finally:
            counts[line] -= 1

    def key(self, step: int = 1) -> Key:
        """Counts and identifies the present decision.

        Args:
            step: -1 for what is no decision, and may not be counted as one: not every exporter asks for it.
        """
        place = here()
        counts = self._seen.setdefault(self._within, Counter())
        counts[place, step] += step
        return *place, counts[place, step], self._within

    @contextmanager
    def within(self, key: Key, part: int) -> Iterator[None]:
        """While active, a part of what a key stands for runs: a branch of a decision, an operand.

        A part that runs once more counts its decisions anew: they are the same ones.
        """
        before, self._within = self._within, (key, part)
        self._seen.pop(self._within, None)
        try:
            yield
        finally:
            self._within = before

    def is_dynamic(self, value: Any, key: Key | None = None, *, is_condition: bool = False) -> bool:
        """Whether a value may differ between runs of the file; with `is_condition`, whether its truth may."""
        if isinstance(value, SYMBOLS):
            return True
        if not isinstance(value, Tensor):
            return False
        if not is_tracing():
            return self.exporter == "dynamo" and torch.compiler.is_compiling()
        value = present(value)
        if is_settled(value):
            return False
        from_data, leaves = self._origins(value)
        if from_data or not leaves:
            return from_data
        if asks_for_emptiness(value, is_condition=is_condition):
            return False
        return self.sizes_vary and not self._same_sizes(leaves, key or self.key(-1))

    def varies(self, value: Any) -> bool:
        """Whether a value may differ between runs of the file; then the decision is noted as computed there."""
        dynamic = self.is_dynamic(value)
        if dynamic:
            self.mark("computed in the file")
        return dynamic

    def _same_sizes(self, leaves: list[int], key: Key) -> bool:
        """Whether no run at other sizes, the first of which comes to this decision, computed it from others."""
        mine = self.sizes[key] = tuple(self.log.value_of(leaf) if self.log else -1 for leaf in leaves)
        return any(key in other for other in self.others[:1]) and all(o.get(key, mine) == mine for o in self.others)

    def from_data(self, value: Any) -> bool:
        """Whether a value depends on the data of the inputs, not only on their sizes."""
        if isinstance(value, Tensor) and is_tracing():
            return self._origins(present(value))[0]
        return False

    def peel(self, condition: Tensor | None = None) -> None:
        """Notes that a round of the loop that is tried is not as all others are, which may hold of the first only.

        Args:
            condition: That of a decision with a branch that fails; it counts if the number of the round is in it.
        """
        if not self.surveying or not self.trials:
            return
        trial = self.trials[-1]
        if condition is None or (trial.number is not None and depends_on(present(condition), trial.number)):
            self.to_peel.add(trial.place)

    def vary(self, tensors: Iterable[Tensor]) -> None:
        """Notes that traced tensors vary though the trace does not say so: a loop in the file carries them."""
        if self.log is not None and is_tracing():
            for tensor in tensors:
                self.log.data_sizes.vary(recorded_value(tensor))

    def vary_size(self, tensor: Tensor) -> None:
        """Notes that values decide how long a traced tensor is."""
        if self.log is not None and is_tracing():
            self.log.data_sizes.note(recorded_value(tensor), 0)

    def may_differ(self, one: Tensor, other: Tensor) -> bool:
        """Whether two traced tensors of one shape may be of others for other values."""
        return self.log is not None and self.log.data_sizes.may_differ(recorded_value(one), recorded_value(other))

    def fixed_last(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Traced tensors in the order of a nested trace's inputs: weights, and what follows from them, are the last."""
        return sorted(tensors, key=self._is_fixed) if is_tracing() else list(tensors)

    def count_varying(self, tensors: Sequence[Tensor]) -> int:
        """How many tensors there are up to the last that may differ between runs of the file."""
        return next((n for n in range(len(tensors), 0, -1) if not self._is_fixed(tensors[n - 1])), 0)

    def _is_fixed(self, tensor: Tensor) -> bool:
        return is_of_weights(present(tensor), self.inputs)

    def data_dims(self, tensors: Iterable[Tensor]) -> list[frozenset[int]]:
        """The dimensions of each traced tensor whose sizes values decide."""
        if self.log is None:
            return [frozenset() for _ in tensors]
        return [self.log.data_sizes.dims(recorded_value(tensor)) for tensor in tensors]

    def note_data_dims(self, tensors: Iterable[Tensor], dims: Iterable[frozenset[int]]) -> None:
        """Notes which dimensions of the inputs of a nested trace have sizes that values decide."""
        if self.log is None:
            return
        for tensor, own in zip(tensors, dims, strict=True):
            for dim in own:
                self.log.data_sizes.note(recorded_value(tensor), dim)

    def _origins(self, value: Tensor) -> tuple[bool, list[int]]:
        return origins(value, self.inputs, self.log.data_sizes if self.log else DataSizes())

    def hash(self, value: Tensor) -> int:
        """The hash of a tensor that torch.export captures; one that stands for a number cannot be looked up.

        Raises:
            RefusedDecision: The tensor may stand for a number.
        """
        is_looked_up = torch.compiler.is_compiling() and is_user_file(sys._getframe(2).f_code.co_filename)
        if is_looked_up and self.number_type(value) is not None:
            raise refusal("a number that values decide is a key; compare it instead.")
        return id(value)

    def mark(self, what: str) -> None:
        """Notes how the present decision was written."""
        place = short(*here())
        if self.done.get(place) in (None, "computed in the file"):
            self.done[place] = what

    def drop_check(self, error: BaseException) -> None:
        """Notes that the file does not make the present check.

        Args:
            error: What the model raises where the check fails.

        Raises:
            RefusedDecision: The model catches it, and goes on in another way.
        """
        catcher = find_catcher(error)
        if catcher and not self.surveying:
            raise refusal(
                f"a decision depends on the inputs, and what it raises is caught around {catcher}; use an if instead."
            )
        self.dropped[short(*here())] = None

    def condition(self, value: Any, key: Key | None = None) -> bool | Tensor:
        """The truth of a value: a Python bool if it cannot vary, else a boolean tensor of shape ()."""
        if hasattr(type(value), "count_items"):  # a list whose length varies
            value = value.count_items() > 0
        if not self.is_dynamic(value, key, is_condition=True):
            if self.log is not None and is_tracing():
                self.log.note_constant()
            with without_tracing():
                return bool(value)
        tensor = as_tensor(value)
        if tensor.dim():
            tensor = tensor.reshape(())  # like bool(), fails if there is more than one element
        return tensor if tensor.dtype == torch.bool else tensor != 0


_current: ContextVar[Session | None] = ContextVar("control_flow", default=None)


def current() -> Session | None:
    """The session of this thread's export; None in plain runs."""
    return _current.get()


@contextmanager
def activate(session: Session) -> Iterator[Callable[[Any], None]]:
    """Makes a session current, for one run.

    Yields:
        Checks the results of the run.

    Raises:
        RefusedDecision: A decision was refused, though the model caught the error.
    """
    token = _current.set(session)
    session.begin()
    try:
        # A TorchScript trace has a log, which knows what a key was computed from.
        hashes = internals.add_tensor_method("__hash__", lambda tensor: session.hash(tensor))
        wide = wide_numbers(lambda: session.numbers) if session.computes_wide else nullcontext()
        aliases = nullcontext(_pass) if session.surveying else watch_aliases(place_in_model, refusal)
        keys = hashes if session.log is None else nullcontext()
        sizes = sizes_are(lambda recorded: session.numbers.is_recorded_size(recorded))
        with keep_refusals(session.refusals), keys, wide, sizes, aliases as check:
            yield check
    finally:
        _current.reset(token)
        session.end()
    if session.refusals and not session.surveying:
        raise session.refusals[0]  # a try of the model's swallowed it
    session.check_arrivals()
    session.check_choices()


def _pass(_: Any) -> None:
    pass


def as_tensor(value: Any, like: Tensor | None = None) -> Tensor:
    """Converts a number or a symbolic size to a tensor of shape (); a tensor stays as it is."""
    device = like.device if like is not None else None
    if not isinstance(value, (Tensor, *SYMBOLS)) and not is_tracing() and current() is not None:
        return torch.full((), value, device=device)  # a constant of torch.tensor would be lifted out of a loop's body
    return value_as_tensor(value, device)
