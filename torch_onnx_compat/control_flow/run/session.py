"""What is known while a rewritten model runs: which exporter records it, and which sizes vary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.backends.decisions import DecisionLog, asks_for_emptiness, origins
from torch_onnx_compat.entry import Exporter
from torch_onnx_compat.places import short
from torch_onnx_compat.stack import frames
from torch_onnx_compat.tracing import is_tracing, untraced

Key = tuple[str, int, int]
"""A decision of one run: file, line, and how many were taken there before."""

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class RefusedDecision(ExportFailed):
    """A decision that has no equivalent; the message begins with its place."""


@dataclass
class Session:
    """One run, or several of the same model at different sizes that are compared."""

    exporter: Exporter
    inputs: int
    """How many of the trace's inputs are the model's."""
    sizes_vary: bool = False
    surveying: bool = False
    """Whether this run only looks for decisions: nothing is refused then."""
    log: DecisionLog | None = None
    """The log of the run, which knows the sizes that were read."""
    sizes: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    """What each decision of this run rests on, if on sizes only."""
    other: dict[Key, tuple[int, ...]] | None = None
    """The same of a run at other sizes."""
    conflicts: dict[Key, str] = field(default_factory=dict)
    """Decisions whose branches cannot be joined by a mask at every size, and why."""
    alternatives: dict[Key, bool] = field(default_factory=dict)
    """Decisions between two ways to compute the same, and whether the first way, or the second, serves every size."""
    lone: dict[Key, bool] = field(default_factory=dict)
    """Decisions on sizes of which one branch does not run at this run's sizes, and whether the first one does."""
    equal: dict[Key, bool] = field(default_factory=dict)
    """Decisions on sizes of which both branches run at this run's sizes, and whether they compute the same."""
    unbounded: set[tuple[str, int]] = field(default_factory=set)
    """File and line of each ``while`` that did not end by itself."""
    done: dict[str, str] = field(default_factory=dict)
    """What became of each place."""
    dropped: dict[str, None] = field(default_factory=dict)
    """Checks that the file cannot make."""
    _seen: Counter[tuple[str, int]] = field(default_factory=Counter)

    def begin(self) -> None:
        """Starts a run."""
        self._seen.clear()
        self.sizes = {}

    @contextmanager
    def inner_trace(self, inputs: int) -> Iterator[None]:
        """For a trace in a trace, which has inputs of its own."""
        before = self.inputs
        logged = self.log.inputs if self.log else 0
        self.inputs = inputs
        if self.log:
            self.log.inputs = inputs
        try:
            yield
        finally:
            self.inputs = before
            if self.log:
                self.log.inputs = logged

    def key(self) -> Key:
        """Identity of the decision that is being taken."""
        filename, line = here()
        self._seen[filename, line] += 1
        return filename, line, self._seen[filename, line]

    def is_dynamic(self, value: Any, key: Key | None = None, *, is_condition: bool = False) -> bool:
        """Whether a value, or only its truth, may differ in the file's runs from what it is now."""
        if isinstance(value, SYMBOLS):
            return True
        if not isinstance(value, Tensor):
            return False
        if not is_tracing():
            return self.exporter == "dynamo" and torch.compiler.is_compiling()
        from_data, leaves = origins(value, self.inputs)
        if from_data or not leaves:
            return from_data
        if asks_for_emptiness(value, is_condition=is_condition):
            return False
        return self.sizes_vary and not self._same_sizes(leaves, key or self.key())

    def _same_sizes(self, leaves: list[int], key: Key) -> bool:
        self.sizes[key] = tuple(self.log.value_of(leaf) if self.log else -1 for leaf in leaves)
        return self.other is not None and self.other.get(key) == self.sizes[key]

    def from_data(self, value: Any) -> bool:
        """Whether a value that may vary does so with the data of the inputs, not only with their sizes."""
        if isinstance(value, Tensor) and is_tracing():
            return origins(value, self.inputs)[0]
        return False

    def mark(self, what: str) -> None:
        """Notes what became of the decision that is being taken."""
        place = short(*here())
        if self.done.get(place) in (None, "computed in the file"):
            self.done[place] = what

    def drop_check(self) -> None:
        """Notes that the check that is being made has no place in the file."""
        self.dropped[short(*here())] = None

    def condition(self, value: Any, key: Key | None = None) -> bool | Tensor:
        """The truth of a value: a Python bool if it cannot vary, else a tensor of shape ()."""
        if not self.is_dynamic(value, key, is_condition=True):
            with untraced():
                return bool(value)
        tensor = as_tensor(value)
        if tensor.dim():
            tensor = tensor.reshape(())  # as bool() does, an error if it has more than one element
        return tensor if tensor.dtype == torch.bool else tensor != 0


_current: ContextVar[Session | None] = ContextVar("control_flow", default=None)


def current() -> Session | None:
    """The session of this thread's export; None in plain runs."""
    return _current.get()


@contextmanager
def activate(session: Session) -> Iterator[None]:
    """Makes a session current, for one run."""
    token = _current.set(session)
    session.begin()
    try:
        yield
    finally:
        _current.reset(token)


def here() -> tuple[str, int]:
    """File and line of the model's code that called the run-time module."""
    outside = (f for f in frames() if not str(f.f_globals.get("__name__", "")).startswith("torch_onnx_compat."))
    frame = next(outside)
    return frame.f_code.co_filename, frame.f_lineno


def refusal(reason: str) -> RefusedDecision:
    """The error for the decision that is being taken."""
    return RefusedDecision(f"{short(*here())}: {reason}")


def as_tensor(value: Any, like: Tensor | None = None) -> Tensor:
    """A number, a symbolic size or a tensor as a tensor; numbers get shape ()."""
    device = like.device if like is not None else None
    if isinstance(value, Tensor):
        return value
    if isinstance(value, torch.SymBool):
        return torch.full((), torch.sym_ite(value, 1, 0), dtype=torch.int64, device=device) != 0
    if isinstance(value, torch.SymInt):
        return torch.full((), value, dtype=torch.int64, device=device)
    if isinstance(value, torch.SymFloat):
        return torch.full((), value, device=device)
    if not is_tracing() and current() is not None:
        return torch.full((), value, device=device)  # a constant of torch.tensor may not stand in a loop's body
    return torch.tensor(value, device=device)


def is_number(value: Any) -> bool:
    """Whether a value is a plain or symbolic number."""
    return isinstance(value, (bool, int, float, *SYMBOLS)) and not (isinstance(value, float) and math.isnan(value))
