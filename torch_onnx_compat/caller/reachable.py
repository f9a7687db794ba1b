"""What can be reached from values, and changed: objects and modules, containers, arrays, iterators, tensors.

What a branch or a call changes is found so, and not from its code: a helper function or a method may change it as well.
"""

from __future__ import annotations

import array
import contextvars
import dis
import functools
import gc
import io
import itertools
import operator
import os
import pickle
import queue
import random
import sys
import types
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat.caller.reach import CONTAINERS, MISSING, is_followed, values_in
from torch_onnx_compat.caller.snapshot import Contents, content_of, is_alike, is_object

INTERNAL = frozenset(vars(nn.Module()))
"""The attributes that every module has; those that hold parameters, buffers and modules are looked at by themselves."""

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, range, slice})


@dataclass(frozen=True)
class Slots:
    """An object whose attributes lie in slots, with their values at one moment."""

    holder: Any
    before: dict[str, Any]

    def is_changed(self) -> bool:
        """Whether one of them has another value now."""
        return bool(self.changed_key())

    def changed_key(self) -> str:
        """The first of them that has another value, as ``.name``."""
        names = (name for name, old in self.before.items() if not is_alike(getattr(self.holder, name, MISSING), old))
        return next((f".{name}" for name in names), "")

    def put_back(self) -> None:
        """Restores them."""
        for name, old in self.before.items():
            if old is not MISSING:
                setattr(self.holder, name, old)
            elif hasattr(self.holder, name):
                delattr(self.holder, name)


@dataclass(frozen=True)
class Variable:
    """A variable of a function that a helper uses, and may bind anew, with its value at one moment."""

    holder: types.CellType
    before: Any

    @classmethod
    def of(cls, cell: types.CellType) -> Variable:
        """What a cell holds now."""
        return cls(cell, content_of(cell))

    def is_changed(self) -> bool:
        """Whether it holds another value now."""
        return not is_alike(content_of(self.holder), self.before)

    def changed_key(self) -> str:
        """Empty: it has no parts."""
        return ""

    def put_back(self) -> None:
        """Restores it."""
        if self.before is not MISSING:
            self.holder.cell_contents = self.before
        elif content_of(self.holder) is not MISSING:
            del self.holder.cell_contents


@dataclass(frozen=True)
class Position:
    """An iterator, a generator or a stream, and how far it was at one moment; it cannot be put back."""

    holder: Any
    before: Any

    def is_changed(self) -> bool:
        """Whether it went on."""
        return bool(_position(self.holder) != self.before)

    def changed_key(self) -> str:
        """Empty: it has no parts."""
        return ""

    def put_back(self) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Body:
    """A class that a function of the model's has made, with its attributes at one moment."""

    holder: type
    before: dict[str, Any]

    def is_changed(self) -> bool:
        """Whether one of them has another value now."""
        return bool(self.changed_key())

    def changed_key(self) -> str:
        """The first of them that has another value, as ``.name``."""
        now = vars(self.holder)
        keys = (key for key in {**self.before, **now} if now.get(key, MISSING) is not self.before.get(key, MISSING))
        return next((f".{key}" for key in keys), "")

    def put_back(self) -> None:
        """Restores them."""
        now = dict(vars(self.holder))
        for key in {**self.before, **now}:
            if key not in self.before:
                delattr(self.holder, key)
            elif now.get(key, MISSING) is not self.before[key]:
                setattr(self.holder, key, self.before[key])


Content = Contents | Slots | Variable | Position | Body


def _text_of(key: Any) -> str:
    """A key as the source may have it; only of what Python has made is it known what its text does."""
    return repr(key) if type(key) in (str, int) else "..."


@dataclass
class Reachable:
    """What can be reached from some values.

    Attributes:
        owners: Modules and objects, which have their attributes in a dictionary.
        contents: Everything else that can be changed, with the name by which it was reached.
        tensors: The tensors.
    """

    owners: list[Any] = field(default_factory=list)
    contents: list[tuple[str, Content]] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def leave_out(self, values: Iterable[Any]) -> None:
        """Leaves values out, under whatever name they are reached."""
        self._seen.update(map(id, values))

    def add(self, values: Iterable[tuple[str, Any]]) -> None:
        """Adds what can be reached from named values."""
        todo = list(values)
        while todo:
            name, value = todo.pop()
            if isinstance(value, Tensor) and id(value) not in self._seen:
                self._seen.add(id(value))
                self.tensors.append(value)
            elif id(value) not in self._seen and not _is_nothing(value):
                self._seen.add(id(value))
                todo += self._enter(name, value)

    def _enter(self, name: str, value: Any) -> Iterable[tuple[str, Any]]:
        """Notes one value; returns what lies in it, with its names."""
        position = _position(value)
        if position is not None:
            self.contents.append((name, Position(value, position)))
        holds_items = isinstance(value, (*CONTAINERS, np.ndarray, tuple))
        inner = self._enter_container(name, value) if holds_items else []
        if isinstance(value, nn.Module) or is_object(value):  # a class of the model's may be a list, too
            self.owners.append(value)
            return [*inner, *((f"{name}.{part}", one) for part, one in _parts_of(value))]
        if holds_items:
            return inner
        if isinstance(value, type):
            return self._enter_class(name, value)
        if isinstance(value, types.FunctionType):
            self._note_variables(value)
        if isinstance(value, _CALLABLE):
            return _held_by(name, value)
        if hasattr(type(value), "__next__"):  # such as zip and enumerate, which go on where what they hold does
            return [(name, item) for item in gc.get_referents(value)]
        return self._enter_slots(name, value)

    def _enter_container(self, name: str, value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, tuple):
            self.contents.append((name, Contents.of(value)))
        if isinstance(value, np.ndarray):
            return []
        items = values_in(value)
        keys = dict.keys(value) if isinstance(value, dict) else itertools.count()
        is_ordered = isinstance(value, (dict, list, tuple))
        return [(f"{name}[{_text_of(k)}]" if is_ordered else name, item) for k, item in zip(keys, items, strict=False)]

    def _note_variables(self, function: types.FunctionType) -> None:
        """Notes what a function may bind: variables of functions around it, and its own attributes."""
        if not is_followed(function.__module__):
            return
        if vars(function):
            self.contents.append((function.__name__, Contents.of(vars(function))))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        new = [(name, cell) for name, cell in cells if id(cell) not in self._seen and name in binds(function.__code__)]
        self._seen.update(id(cell) for _, cell in new)
        self.contents += [(name, Variable.of(cell)) for name, cell in new]

    def _enter_class(self, name: str, value: type) -> list[tuple[str, Any]]:
        self.contents.append((name, Body(value, dict(vars(value)))))
        return [(f"{name}.{part}", one) for part, one in vars(value).items() if not part.startswith("__")]

    def _enter_slots(self, name: str, value: Any) -> Iterable[tuple[str, Any]]:
        kind: Any = type(value)
        slots = _slots_of(kind)
        if not slots:
            return []
        before = {slot: getattr(value, slot, MISSING) for slot in slots}
        self.contents.append((name, Slots(value, before)))
        return [(f"{name}.{slot}", one) for slot, one in before.items()]


_CALLABLE = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinMethodType,
    types.MethodWrapperType,
    functools.partial,
)


def _is_nothing(value: Any) -> bool:
    """Whether nothing in a value can be changed, or it is this package's own, which changes as it should."""
    kind = type(value)
    if kind is types.FunctionType:
        return not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value))
    if isinstance(value, type):  # what stands in a Python module is looked after by Bindings
        return "<locals>" not in value.__qualname__ or not is_followed(value.__module__)
    return kind in _ATOMS or isinstance(value, Tensor) or _is_own(kind)


def _is_own(code: Any) -> bool:
    """Whether a function or a class is this package's."""
    return str(getattr(code, "__module__", "")).startswith("torch_onnx_compat.")


def _parts_of(owner: Any) -> list[tuple[str, Any]]:
    if not isinstance(owner, nn.Module):
        return list(vars(owner).items())
    own = [(name, value) for name, value in vars(owner).items() if name not in INTERNAL]
    return [*own, *owner._modules.items()]


def _held_by(name: str, function: Any) -> list[tuple[str, Any]]:
    """What a function keeps: the variables of the functions around it, its defaults, the object of a method."""
    if isinstance(function, types.MethodType):
        return [(name.rpartition(".")[0] or name, function.__self__), (name, function.__func__)]
    if isinstance(function, (types.BuiltinMethodType, types.MethodWrapperType)):
        return [(name, function.__self__)]
    if isinstance(function, functools.partial):
        return [*((name, value) for value in (function.func, *function.args)), (f"{name}.keywords", function.keywords)]
    if not is_followed(function.__module__):
        return []
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*variables_of_model(function), *(("a default value", value) for value in defaults)]


def variables_of_model(function: Any) -> list[tuple[str, Any]]:
    """The variables of the model's functions that a function uses; of a function of this package, those of its own."""
    if _is_own(function):
        inner = [value for _, value in _variables_around(function) if isinstance(value, types.FunctionType)]
        return [pair for one in inner for pair in variables_of_model(one)]
    return _variables_around(function)


def _variables_around(function: Any) -> list[tuple[str, Any]]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = []
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        with suppress(ValueError):  # not bound yet
            found.append((name, cell.cell_contents))
    return found


def _position(value: Any) -> Any:
    """How far an iterator, a generator, a stream or a source of random numbers is; None of all else."""
    if isinstance(value, io.IOBase):
        with suppress(OSError, ValueError):  # closed, or none that can be asked
            return value.tell()
        return 0
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        return -1 if frame is None else (frame.f_lasti, *map(id, frame.f_locals.values()))
    if hasattr(type(value), "__next__") and hasattr(type(value), "__length_hint__"):
        return operator.length_hint(value)
    kind: Any = type(value)
    tell = _tell_of(kind)
    return None if tell is None else tell(value)


@functools.cache
def _tell_of(kind: Any) -> Callable[[Any], Any] | None:
    return next((_TELL[base] for base in kind.__mro__ if base in _TELL), None)


_TELL: dict[Any, Callable[[Any], Any]] = {
    itertools.count: repr,
    type(itertools.tee(())[0]): repr if sys.version_info >= (3, 14) else lambda tee: tee.__reduce__()[2][1],
    random.Random: pickle.dumps,
    np.random.RandomState: pickle.dumps,
    np.random.Generator: pickle.dumps,
    torch.Generator: lambda source: source.get_state().numpy().tobytes(),
    array.array: array.array.tobytes,
    memoryview: memoryview.tobytes,
    queue.SimpleQueue: queue.SimpleQueue.qsize,
    contextvars.ContextVar: lambda variable: id(variable.get(None)),
}
"""What tells how far objects of C are that have neither attributes nor a length of what is left.

From Python 3.14 on nobody can tell of a tee, and the text of one stays the same.
"""

_python: Any = random
SOURCES = (
    ("Python's source of random numbers", _python._inst),
    ("numpy's source of random numbers", np.random.mtrand._rand),
    ("os.environ", vars(os.environ)["_data"]),
)
"""What lies behind the functions of modules, with what it is called."""


@functools.cache
def binds(code: types.CodeType) -> frozenset[str]:
    """The variables of functions around it that a function's code binds, or that of functions inside it."""
    own = (one.argval for one in dis.get_instructions(code) if one.opname in ("STORE_DEREF", "DELETE_DEREF"))
    inner = (name for one in code.co_consts if isinstance(one, types.CodeType) for name in binds(one))
    return frozenset((*own, *inner))


@functools.cache
def _slots_of(kind: Any) -> tuple[str, ...]:
    if not is_followed(kind.__module__):
        return ()
    found = (name for base in kind.__mro__ for name, value in vars(base).items() if _is_slot(value))
    return tuple(dict.fromkeys(found))


def _is_slot(value: Any) -> bool:
    return isinstance(value, types.MemberDescriptorType)
