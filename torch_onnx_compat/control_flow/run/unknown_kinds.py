"""Tensors of which nobody knows whether Python has a number in their place, or a tensor.

A name may hold 0 before a loop, or after one branch, and a tensor else. The file has a tensor for either, and computes
the same with it, unless code asks which of the two it is: ``isinstance(state, int)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torch_onnx_compat.backends.wide import Numbers
from torch_onnx_compat.tracing import is_tracing, recorded_value


@dataclass(frozen=True)
class Origin:
    """Why a tensor may stand for a number."""

    reason: str
    place: tuple[str, int] | None = None
    """File and line of the decision that it comes from, after whose branches it is one or the other."""
    kinds: frozenset[type] = frozenset()
    """The types of the numbers that it may stand for, if it is no tensor for certain."""


class UnknownKinds:
    """The tensors of one run, and what is computed from them and from numbers alone."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Tensor, Origin]] = {}
        self._recorded: dict[int, Origin] = {}
        """The same by their numbers in a trace."""

    @contextmanager
    def inner_trace(self) -> Iterator[None]:
        """While active, what is noted of a trace is of a nested one, which counts its values anew."""
        outer, self._recorded = self._recorded, {}
        try:
            yield
        finally:
            self._recorded = outer

    def clear(self) -> None:
        """Forgets all."""
        self._tensors.clear()
        self._recorded.clear()

    def note(
        self,
        tensor: Tensor,
        reason: str,
        place: tuple[str, int] | None = None,
        kinds: frozenset[type] = frozenset(),
    ) -> None:
        """Notes a tensor."""
        origin = Origin(reason, place, kinds)
        self._tensors[id(tensor)] = tensor, origin
        if is_tracing():
            self._recorded[recorded_value(tensor).unique()] = origin

    def kinds(self, value: Any) -> frozenset[type]:
        """The types of the numbers that a value may stand for; empty if that is not known."""
        return self._tensors[id(value)][1].kinds if id(value) in self._tensors else frozenset()

    def origin(self, value: Any, numbers: Numbers) -> Origin | None:
        """Why a value may stand for a number; None if it does for certain, or for certain does not."""
        if not self._tensors or not isinstance(value, Tensor):
            return None
        if id(value) in self._tensors:
            return self._tensors[id(value)][1]
        return self._of_recorded(recorded_value(value), numbers) if is_tracing() else None

    def _of_recorded(self, value: Any, numbers: Numbers) -> Origin | None:
        """The same for what was computed: with a tensor for certain among its operands, it is one."""
        found: Origin | None = None
        seen: set[int] = set()
        todo = [value]
        while todo:
            recorded = todo.pop()
            unique, node = recorded.unique(), recorded.node()
            if unique in seen:
                continue
            seen.add(unique)
            operands: Iterator[Any] = node.inputs()
            if unique in self._recorded:
                found = found or self._recorded[unique]
            elif not numbers.has_recorded(unique) and not numbers.is_recorded_size(recorded):
                before = len(todo)
                todo += operands
                if len(todo) == before and node.kind() != "prim::Constant":
                    return None  # an input or a weight
        return found
