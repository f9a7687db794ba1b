"""An ONNX If for branches that a mask cannot join, in the way each exporter has for it."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.control_flow.guard import Guard, attempt
from torch_onnx_compat.control_flow.join import UNDEFINED
from torch_onnx_compat.control_flow.session import Refused, Session, as_tensor, is_number
from torch_onnx_compat.places import first_line
from torch_onnx_compat.tracing import is_tracing, untraced
from torch_onnx_compat.watch import Watcher


class NoConditional(Exception):
    """The exporter cannot make an If of these branches; the text says why."""


@dataclass
class Piece:
    """A branch: a function and the values of its parameters."""

    function: Callable[..., Any]
    scope: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        """Runs the branch."""
        code = self.function.__code__
        return self.function(*(self.scope.get(name, UNDEFINED) for name in code.co_varnames[: code.co_argcount]))


def conditional(session: Session, condition: Tensor, then: Piece, otherwise: Piece) -> Any:
    """The value of one of the branches, chosen when the file runs.

    Raises:
        NoConditional: A branch yields something that is no tensor, or the exporter refuses it.
    """
    try:
        if is_tracing():
            return _scripted(session, condition, then, otherwise)
        return _cond(session, condition, then, otherwise)
    except (NoConditional, Refused):
        raise
    except Exception as error:
        raise NoConditional(f"{type(error).__name__}: {first_line(error)}") from error


# What a branch reads: its parameters, and what its function and those it calls close over


@dataclass
class _Captured:
    """The tensors that two branches read from outside, and how to put others in their places."""

    pieces: tuple[Piece, ...]
    tensors: list[Tensor] = field(default_factory=list)
    _cells: list[types.CellType] = field(default_factory=list)

    def __post_init__(self) -> None:
        for piece in self.pieces:
            self._cells += [c for c in _cells(piece.function) if not any(c is known for known in self._cells)]
        values = [c.cell_contents for c in self._cells] + [v for p in self.pieces for v in p.scope.values()]
        seen: dict[int, Tensor] = {}
        for value in values:
            _map_tensors(value, lambda tensor: seen.setdefault(id(tensor), tensor))
        self.tensors = list(seen.values())

    @contextmanager
    def replaced_by(self, others: tuple[Tensor, ...]) -> Iterator[tuple[Piece, ...]]:
        """The branches reading other tensors."""
        table = {id(old): new for old, new in zip(self.tensors, others, strict=True)}

        def swap(tensor: Tensor) -> Tensor:
            return table.get(id(tensor), tensor)

        before = [cell.cell_contents for cell in self._cells]
        for cell, value in zip(self._cells, before, strict=True):
            cell.cell_contents = _map_tensors(value, swap)
        try:
            yield tuple(Piece(p.function, {k: _map_tensors(v, swap) for k, v in p.scope.items()}) for p in self.pieces)
        finally:
            for cell, value in zip(self._cells, before, strict=True):
                cell.cell_contents = value


def _cells(function: Any) -> list[types.CellType]:
    found: list[types.CellType] = []
    todo = [function]
    seen: set[int] = set()
    while todo:
        for cell in getattr(todo.pop(), "__closure__", None) or ():
            if id(cell) in seen or not _is_filled(cell):
                continue
            seen.add(id(cell))
            found.append(cell)
            if isinstance(cell.cell_contents, types.FunctionType):
                todo.append(cell.cell_contents)
    return found


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(_map_tensors(item, function) for item in value)
    if type(value) is dict:
        return {key: _map_tensors(item, function) for key, item in value.items()}
    return value


# Results: only tensors pass through an If


def flat(value: Any, tensors: list[Tensor]) -> Any:
    """The structure of a result, its tensors and numbers taken out."""
    if isinstance(value, Tensor) or is_number(value):
        tensors.append(as_tensor(value))
        return Tensor
    if isinstance(value, dict):
        return type(value), [(key, flat(item, tensors)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [flat(item, tensors) for item in value]
    if value is None or value is UNDEFINED:
        return value
    raise NoConditional(f"a branch yields a {type(value).__name__}")


def filled(structure: Any, tensors: Iterator[Tensor]) -> Any:
    if structure is Tensor:
        return next(tensors)
    if not isinstance(structure, tuple):
        return structure
    kind, items = structure
    if issubclass(kind, dict):
        return kind((key, filled(item, tensors)) for key, item in items)
    values = [filled(item, tensors) for item in items]
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def _checked(structures: list[Any], results: list[list[Tensor]]) -> None:
    if structures[0] != structures[1]:
        raise NoConditional("the branches yield different structures")
    for one, other in zip(*results, strict=True):
        if one.dtype != other.dtype:
            raise NoConditional(f"a result is {one.dtype} in one branch and {other.dtype} in the other")
    if not results[0]:
        raise NoConditional("the branches yield no tensor")


def _value(piece: Piece) -> Any:
    outcome = attempt(piece, Guard(by_size=False))
    if outcome.error is not None:
        raise outcome.error
    if outcome.writes:
        raise NoConditional("a branch writes in place into a tensor from outside")
    return outcome.value


# TorchScript: both branches are traced on their own and called by a scripted if


def _scripted(session: Session, condition: Tensor, then: Piece, otherwise: Piece) -> Any:
    captured = _Captured((then, otherwise))
    structures: list[Any] = [None, None]
    results: list[list[Tensor]] = [[], []]

    def traced(which: int, examples: tuple[Tensor, ...]) -> Any:
        def run(*tensors: Tensor) -> tuple[Tensor, ...]:
            with captured.replaced_by(tensors) as pieces:
                results[which] = []
                structures[which] = flat(_value(pieces[which]), results[which])
            return tuple(result.clone() for result in results[which])

        return torch.jit.trace(run, examples, check_trace=False)

    if not captured.tensors:
        raise NoConditional("the branches read no tensor")
    with untraced():
        examples = tuple(tensor.detach().clone() for tensor in captured.tensors)
        inputs, session.inputs = session.inputs, len(examples)
        try:
            functions = [traced(which, examples) for which in (0, 1)]
        finally:
            session.inputs = inputs
        _checked(structures, results)
        chooser = internals.scripted_if(functions[0], functions[1], len(examples), len(results[0]))
    chosen = chooser(condition, *captured.tensors)
    return filled(structures[0], iter(chosen if isinstance(chosen, tuple) else (chosen,)))


# dynamo: torch.cond traces the branches itself


def _cond(session: Session, condition: Tensor, then: Piece, otherwise: Piece) -> Any:
    structures: list[Any] = []
    results: list[list[Tensor]] = []

    def flattened(piece: Piece) -> Callable[[], tuple[Tensor, ...]]:
        def run() -> tuple[Tensor, ...]:
            tensors: list[Tensor] = []
            flat(piece(), tensors)
            return tuple(tensor.clone() for tensor in tensors)  # results may not alias what a branch reads

        return run

    for piece in (then, otherwise):
        tensors: list[Tensor] = []
        structures.append(flat(_value(piece), tensors))
        results.append(tensors)
    _checked(structures, results)
    with internals.without_function_modes(Watcher):
        chosen = torch.cond(condition, flattened(then), flattened(otherwise), ())
    return filled(structures[0], iter(chosen))
