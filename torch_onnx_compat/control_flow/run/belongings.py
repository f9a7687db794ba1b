"""State that a branch can reach beside its names: attributes of modules, and containers that have several names.

A branch that may not be taken runs all the same, so what it writes there is undone. What it bound to an attribute is
one more result of the branch: the attribute gets the joined value. Where the branches leave values that cannot be
joined, such as None and a tensor, the attribute is lost: reading it is refused until it is written again.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from torch import Tensor, nn

from torch_onnx_compat.caller.reach import CONTAINERS, Reach
from torch_onnx_compat.caller.reachable import (
    SOURCES,
    Content,
    Reachable,
    Variable,
    binds,
    variables_of_model,
)
from torch_onnx_compat.caller.snapshot import Bindings, Contents, is_alike, is_object
from torch_onnx_compat.control_flow.run.branch import Branch
from torch_onnx_compat.control_flow.run.join import Mismatch, join
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.session import Session, current
from torch_onnx_compat.tracing import is_tracing, without_tracing

_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (list, dict, set)


class _Sign:
    """What an attribute's table holds in place of a value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNBOUND, LOST = _Sign("unbound"), _Sign("lost")


@dataclass(frozen=True)
class Attribute:
    """An attribute of a module or an object, in the table that holds it: its own, or that of its buffers."""

    owner: Any = field(compare=False)
    table: dict[str, Any] = field(compare=False)
    name: str
    key: int

    @property
    def value(self) -> Any:
        """Its value; UNBOUND if it has none."""
        return self.table.get(self.name, UNBOUND)

    def bind(self, value: Any) -> None:
        """Gives it a value; UNBOUND deletes it."""
        if value is UNBOUND:
            self.table.pop(self.name, None)
        else:
            self.table[self.name] = value

    def lose(self, session: Session) -> None:
        """Makes reading it an error until it is written again."""
        self.table[self.name] = LOST
        session.watch_attribute(self.owner, self.name, _read, _write)


def _read(module: nn.Module, name: str) -> Any:
    tables = (vars(module), *(vars(module).get(table, {}) for table in _TABLES))
    for table in tables:
        if table.get(name, UNBOUND) is LOST:
            raise refusal(
                f"the attribute {name} is read, which a decision or a loop that depends on the inputs has written, in "
                f"one branch with None, say, and in the other with a tensor; keep it in a local variable."
            )
        if name in table:
            return table[name]
    raise AttributeError(f"{type(module).__name__!r} object has no attribute {name!r}")


def _write(module: nn.Module, name: str, value: Any) -> None:
    vars(module)[name] = value


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _without_notes(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """While the function runs, nobody notes which functions run: it calls none of the model's, and makes many calls."""

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        session = current()
        with session.users.pause() if session is not None else nullcontext():
            return function(*args, **kwargs)

    return run


@dataclass
class State:
    """What a branch can reach, as it was before the branch."""

    tables: list[tuple[Any, str, dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    """Module or object, name of the table ("" for its own attributes), the table, and a copy of it."""
    contents: list[tuple[str, Content]] = field(default_factory=list)
    """Whatever else can be changed, with its name."""
    kinds: dict[int, type] = field(default_factory=dict)
    """By identity: the classes of the modules and objects."""
    bindings_outside: Bindings | None = None
    """What the names of classes and of Python modules are bound to."""

    @_without_notes
    def change(self) -> str:
        """The first change since that is no binding of an attribute; empty if there is none."""
        for owner, name, now, before in self.tables:
            if name == "" and type(owner) is not self.kinds[id(owner)]:
                return "the class of an object"
            if name in ("_parameters", "_modules"):
                changed = _changed_keys(now, before)
                if changed:
                    return f"the attribute {changed[0]}"
        changes = ((name, one) for name, one in self.contents if one.is_changed() and not _only_remembers(one))
        first = next((f"{name}{contents.changed_key()}" for name, contents in changes), "")
        return first or (self.bindings_outside.change() if self.bindings_outside is not None else "")

    @_without_notes
    def bound_by_helper(self, function: Any) -> str:
        """The first variable with another value now that a branch's function does not bind itself; else empty."""
        own = binds(function.__code__) if isinstance(function, types.FunctionType) else frozenset()
        variables = ((name, one) for name, one in self.contents if isinstance(one, Variable) and name not in own)
        return next((name for name, one in variables if one.is_changed()), "")

    @_without_notes
    def bindings(self) -> dict[Attribute, tuple[Any, Any]]:
        """The attributes that were bound since, with their values before and now; UNBOUND where they have none."""
        return {
            Attribute(owner, now, key, id(now)): (before.get(key, UNBOUND), now.get(key, UNBOUND))
            for owner, name, now, before in self.tables
            if name in ("", "_buffers")
            for key in _changed_keys(now, before)
            if not _finds_own_weights(owner, now.get(key))
        }

    @_without_notes
    def put_back(self) -> None:
        """Undoes the changes."""
        for owner, name, now, before in self.tables:
            if name == "" and type(owner) is not self.kinds[id(owner)]:
                owner.__class__ = self.kinds[id(owner)]
            now.clear()
            now.update(before)
        for _, contents in self.contents:
            contents.put_back()
        if self.bindings_outside is not None:
            self.bindings_outside.put_back()


def _only_remembers(contents: Content) -> bool:
    """Whether a dictionary has further keys alone, for objects that hold no value that a model computes with.

    Such are the tables of a library, which finds something out at its first call. They are as before after each branch
    and round, so that the next one fills them again, and none can tell another anything.
    """
    holder = contents.holder
    if not isinstance(holder, dict) or not isinstance(contents, Contents):
        return False
    before, now = contents.table(), Contents.of(holder).table()
    if [key for key in now if key in before] != list(before):
        return False  # it lacks one, or has them in another order
    if any(not is_alike(now[key], value) for key, value in before.items()):
        return False
    new = [value for key, value in now.items() if key not in before]
    return all(is_object(value) and vars(value) and all(map(_is_code, vars(value).values())) for value in new)


def _is_code(value: Any) -> bool:
    """Whether it is a module, a class or a function without variables of others, which may hold a tensor."""
    kinds = (types.ModuleType, type, types.BuiltinFunctionType)
    return isinstance(value, kinds) or (isinstance(value, types.FunctionType) and not value.__closure__)


def _finds_own_weights(owner: Any, value: Any) -> bool:
    """Whether a value is a list of weak references to a module's own parameters, and to nothing else.

    A torch.nn.LSTM sees by them that torch.export has replaced its weights, and makes them anew. Where they are put
    back after a branch, it makes them anew once more.
    """
    if not isinstance(value, list) or not value or not isinstance(owner, nn.Module):
        return False
    own = {id(weight) for weight in owner._parameters.values()}
    return all(one is None or (type(one) is weakref.ref and id(one()) in own) for one in value)


def _changed_keys(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    return [str(key) for key in {**before, **now} if now.get(key, UNBOUND) is not before.get(key, UNBOUND)]


@_without_notes
def take_state(branches: Sequence[Any], reach: Reach | None = None, apart_from: Collection[str] = ()) -> State:
    """The state of what some branches can reach.

    Args:
        branches: The branches.
        reach: What the model's code can write to outside of its modules.
        apart_from: Names whose containers somebody else looks after.
    """
    reached = Reachable()
    scopes = [getattr(branch, "scope", {}) for branch in branches]
    values = [pair for scope in scopes for pair in scope.items()]
    values += [pair for one in branches for pair in variables_of_model(getattr(one, "function", one))]
    reached.leave_out(value for name, value in values if name in apart_from and isinstance(value, CONTAINERS))
    reached.add(values)
    reached.add(SOURCES)
    outside = Bindings(reach) if reach is not None else None
    if outside is not None:
        reached.add(outside.values())
    found = State(contents=reached.contents, bindings_outside=outside)
    for owner in reached.owners:
        own = vars(owner)
        found.kinds[id(owner)] = type(owner)
        found.tables.append((owner, "", own, dict(own)))
        for name in _TABLES if isinstance(owner, nn.Module) else ():
            if type(own.get(name)) is dict:
                found.tables.append((owner, name, own[name], own[name].copy()))
    return found


def sort_attributes(
    condition: Tensor, bound: Sequence[dict[Attribute, Any]]
) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
    """The attributes that branches bind: those whose values a mask or an ONNX If can join, and the others."""
    kept: list[Attribute] = []
    lost: list[Attribute] = []
    for attribute in dict.fromkeys(attribute for one in bound for attribute in one):
        values = [one.get(attribute, attribute.value) for one in bound]
        (kept if _are_of_one_kind(condition, values[0], values[-1]) else lost).append(attribute)
    return tuple(kept), tuple(lost)


def _are_of_one_kind(condition: Tensor, a: Any, b: Any) -> bool:
    with without_tracing() if is_tracing() else nullcontext():
        try:
            join(condition, a, b)
        except Mismatch as mismatch:
            return not mismatch.of_kinds
    return True


def bind_attributes(
    session: Session, kept: Iterable[Attribute], values: Iterable[Any], lost: Iterable[Attribute]
) -> None:
    """Gives attributes their values after a decision; those that are lost have none."""
    for attribute, value in zip(kept, values, strict=True):
        attribute.bind(value)
    for attribute in lost:
        attribute.lose(session)


def is_followed(owner: Callable[[], Any]) -> bool:
    """Whether writes to attributes of something are seen and undone: of modules and of objects they are."""
    try:
        return is_object(owner())
    except Exception:  # a name or attribute that is only bound later
        return False


def name_alias(branch: Branch) -> str:
    """A second name of a container that the branch changes, or the name of what holds it; empty if there is none."""
    code = branch.function.__code__
    if "copy_container" not in code.co_names:
        return ""
    for name in code.co_varnames[: code.co_argcount]:
        container = branch.scope.get(name)
        if type(container) in _CONTAINERS:
            for other, value in branch.scope.items():
                if other != name and _holds(value, container):
                    return f"{name} is changed, which is {other} too"
    return ""


def _holds(value: Any, container: Any, depth: int = 3) -> bool:
    if value is container:
        return True
    if not depth or not isinstance(value, (list, tuple, dict)):
        return False
    items = value.values() if isinstance(value, dict) else value
    return any(_holds(item, container, depth - 1) for item in items)
