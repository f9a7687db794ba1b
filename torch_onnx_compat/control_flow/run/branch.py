"""A branch or a loop's body, as rewritten code passes it, and its result as a list of tensors."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.run.join import UNDEFINED, kind_of
from torch_onnx_compat.control_flow.run.lists import AppendLog
from torch_onnx_compat.control_flow.run.number_kinds import is_number
from torch_onnx_compat.control_flow.run.session import as_tensor
from torch_onnx_compat.control_flow.run.slots import Slots
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.watch import Numbering


class NoConditional(Exception):
    """A decision or loop cannot become an ONNX If or Loop; the text is the reason."""


@dataclass
class Branch:
    """A branch: a function and the values of its parameters."""

    function: Callable[..., Any]
    scope: dict[str, Any] = field(default_factory=dict)
    numbering: Numbering = nullcontext
    """How the calls in it are numbered."""
    nesting: Callable[[], AbstractContextManager[None]] | None = None
    """Says to the session which part of the model runs; a decision's own branches if nobody says otherwise."""

    def __call__(self) -> Any:
        """Runs the branch."""
        code = self.function.__code__
        values = [self.scope.get(name, UNDEFINED) for name in code.co_varnames[: code.co_argcount]]
        with self.numbering(), self.nesting() if self.nesting is not None else nullcontext():
            return self.function(*values)


def call_in_scope(function: Callable[..., Any], scope: dict[str, Any], _reading: Any = None) -> Any:
    """Calls a function with the values of its parameters in a scope."""
    return Branch(function, scope)()


@contextmanager
def restore_variables(function: Callable[..., Any]) -> Iterator[None]:
    """Undoes what the body binds among the variables of outer scopes that a function uses."""
    before = variables_of(function)
    try:
        yield
    finally:
        for cell, value in before:
            cell.cell_contents = value


def variables_of(function: Callable[..., Any]) -> list[tuple[types.CellType, Any]]:
    """The bound variables of outer scopes that a function uses, with their values."""
    cells = getattr(function, "__closure__", None) or ()
    return [(cell, cell.cell_contents) for cell in cells if _is_bound(cell)]


def _is_bound(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def flatten(value: Any, tensors: list[Tensor]) -> Any:
    """Flattens a result: returns its structure, and appends its tensors and numbers to a list."""
    if isinstance(value, Tensor) or is_number(value):
        tensors.append(as_tensor(value))
        return Tensor
    if isinstance(value, dict):
        return type(value), [(key, flatten(item, tensors)) for key, item in value.items()]
    if isinstance(value, Slots):
        return Slots, [flatten(part, tensors) for part in (value.length, value.value)]
    if isinstance(value, (list, tuple)):
        return type(value), [flatten(item, tensors) for item in value]
    if isinstance(value, Pair):
        return Pair, [flatten(part, tensors) for part in (value.real, value.imag)]
    if value is None or value is UNDEFINED:
        return value
    if isinstance(value, AppendLog):
        raise NoConditional("a branch yields a list that grows in a loop")
    raise NoConditional(f"a branch yields a {kind_of(value)}")


def unflatten(structure: Any, tensors: Iterator[Tensor]) -> Any:
    """Rebuilds a result from its structure and the tensors in the order of `flatten`."""
    if structure is Tensor:
        return next(tensors)
    if not isinstance(structure, tuple):
        return structure
    kind, items = structure
    if issubclass(kind, dict):
        return kind((key, unflatten(item, tensors)) for key, item in items)
    values = [unflatten(item, tensors) for item in items]
    return kind(*values) if kind in (Pair, Slots) or hasattr(kind, "_fields") else kind(values)
