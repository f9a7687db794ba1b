"""What lies within reach of a model's code at one moment, put back after a run."""

from __future__ import annotations

import functools
import gc
import operator
import types
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat.caller.reach import CONTAINERS, MISSING, Reach, is_followed, values_in


@dataclass(frozen=True)
class Contents:
    """A container or an array, with what is in it at one moment."""

    holder: Any
    before: Any

    @classmethod
    def of(cls, holder: Any) -> Contents:
        """What is in a holder now."""
        return cls(holder, holder.copy() if isinstance(holder, np.ndarray) else _items_of(holder))

    def is_changed(self) -> bool:
        """Whether something else is in it now, or the same in another order."""
        if isinstance(self.holder, np.ndarray):
            return bool(self.holder.tobytes() != self.before.tobytes())
        now, before = _items_of(self.holder), self.before
        if isinstance(now, bytes):
            return bool(now != before)
        if len(now) != len(before):
            return True
        return not (all(map(operator.is_, now, before)) or all(map(is_alike, now, before)))

    def table(self) -> dict[Any, Any]:
        """What was in it, of a dictionary."""
        half = len(self.before) // 2
        return dict(zip(self.before[:half], self.before[half:], strict=True))

    def changed_key(self) -> str:
        """Of a dictionary the first key that is changed, as ``[key]``; else empty."""
        if not isinstance(self.holder, dict):
            return ""
        before, now = self.table(), dict(dict.items(self.holder))
        keys = (key for key in {**before, **now} if not is_alike(before.get(key, MISSING), now.get(key, MISSING)))
        return next((f"[{key!r}]" for key in keys), "")

    def put_back(self) -> None:
        """Restores it if it is changed."""
        if not self.is_changed():
            return
        if isinstance(self.holder, np.ndarray):
            if self.holder.flags.writeable:
                self.holder[...] = self.before
            return
        with suppress(AttributeError, TypeError):  # a container that is read-only by now
            self.holder.clear()
            before = self.table() if isinstance(self.holder, dict) else self.before
            self.holder.update(before) if isinstance(self.holder, (dict, set)) else self.holder.extend(before)


class Bindings:
    """What the names within reach of a model's code are bound to at one moment: of classes, modules and functions.

    Functions, classes and Python modules that were put somewhere stay there: those are imports, and what others patch.
    """

    def __init__(self, reach: Reach) -> None:
        self._classes = [(cls, dict(vars(cls))) for cls in reach.classes.values()]
        self._names = [(space, name, space.get(name, MISSING)) for space, name in reach.names.values()]
        self._cells = [(cell, content_of(cell)) for cell in reach.cells.values()]
        self._objects = reach.objects

    def values(self) -> Iterator[tuple[str, Any]]:
        """What they are bound to, each with a name, and what functions hold otherwise."""
        for cls, attributes in self._classes:
            yield from ((f"{cls.__name__}.{name}", value) for name, value in attributes.items())
        yield from ((name, value) for _, name, value in self._names)
        yield from (("a variable of a function", value) for _, value in self._cells)
        yield from (("a default value", value) for value in self._objects.values())

    def change(self) -> str:
        """The first name that is bound to something else now; empty if there is none."""
        return next((name for _, name, _ in self._changed()), "")

    def put_back(self) -> None:
        """Restores them."""
        for owner, name, old in list(self._changed()):
            if isinstance(owner, type):
                _set_on_class(owner, name, old)
            elif isinstance(owner, dict):
                _bind(owner, name, old)
            else:
                _fill(owner, old)

    def _changed(self) -> Iterator[tuple[Any, str, Any]]:
        """Owner, name and old value of those that are bound to other data."""
        for cls, before in self._classes:
            for name, old, new in _differences(before, vars(cls)):
                if _is_data(new):
                    yield cls, name, old
        for namespace, name, old in self._names:
            new = namespace.get(name, MISSING)
            if new is not old and _is_data(new):
                yield namespace, name, old
        for cell, old in self._cells:
            new = content_of(cell)
            if new is not old and _is_data(new):
                yield cell, "a variable of a function", old


class Snapshot:
    """What lies within reach of a model's code at one moment; `put_back` restores it.

    Attributes:
        tensors: The tensors among it, whose values the snapshot does not hold.
    """

    def __init__(self, reach: Reach) -> None:
        self.tensors: list[Tensor] = []
        self._contents: dict[int, Contents] = {}
        self._names: dict[int, str] = {}
        """Of the contents, by their keys: through which name they are reached."""
        self._bindings = Bindings(reach)
        self._caches = [(cache, cache.cache_info()) for cache in reach.caches.values()]
        for name, value in self._bindings.values():
            self._keep(value, name)

    @classmethod
    def of(cls, reach: Reach) -> Snapshot:
        """A snapshot of this moment: the last one if nothing has changed since, which takes less time to see."""
        last = reach.snapshot
        if not isinstance(last, cls) or last.change():
            last = reach.snapshot = cls(reach)
        return last

    def change(self) -> str:
        """The first name that is bound to something else, or leads to a container that is changed; empty if none."""
        changed = (self._names[key] for key, contents in self._contents.items() if contents.is_changed())
        return self._bindings.change() or next(changed, "")

    def put_back(self) -> None:
        """Restores everything that is not as it was."""
        self._bindings.put_back()
        for contents in self._contents.values():
            contents.put_back()
        for cache, info in self._caches:
            if cache.cache_info().misses != info.misses and (not info.currsize or _holds_stand_in(cache)):
                cache.cache_clear()

    def _keep(self, value: Any, name: str) -> None:
        """Notes the contents of a container or an object, and of those in it."""
        kind = type(value)
        if kind in _ATOMS or id(value) in self._contents:
            return
        if isinstance(value, Tensor):
            self.tensors.append(value)
        elif isinstance(value, (*CONTAINERS, tuple)):
            if not isinstance(value, tuple):
                self._note(value, name)
            for item in values_in(value):
                self._keep(item, name)
        elif isinstance(value, np.ndarray):
            self._note(value, name)
        elif is_object(value):
            self._keep(vars(value), name)

    def _note(self, holder: Any, name: str) -> None:
        self._contents[id(holder)] = Contents.of(holder)
        self._names[id(holder)] = name


_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type, FunctionType, types.ModuleType})


@functools.cache
def _is_kind_of_object(kind: Any) -> bool:
    if issubclass(kind, nn.Module):
        return True
    holds_models = is_followed(kind.__module__) or kind.__module__ in _CONTAINERS_OF_PYTHON
    return holds_models and bool(kind.__dictoffset__) and not issubclass(kind, (type, BaseException))


_CONTAINERS_OF_PYTHON = frozenset({"argparse", "collections", "queue", "types", "weakref"})
"""Modules of Python whose objects have attributes for what others put into them: UserList, Queue, SimpleNamespace,
WeakValueDictionary."""


def is_object(value: Any) -> bool:
    """Whether a value is a module, or an object with attributes whose class is not torch's, numpy's or Python's."""
    kind: Any = type(value)
    return _is_kind_of_object(kind) and isinstance(getattr(value, "__dict__", None), dict)


def content_of(cell: CellType) -> Any:
    """What a cell holds; MISSING if it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


def _set_on_class(cls: type, name: str, value: Any) -> None:
    with suppress(AttributeError, TypeError):  # a class that takes no attributes
        if value is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value)


def _bind(namespace: dict[str, Any], name: str, value: Any) -> None:
    if value is MISSING:
        del namespace[name]
    else:
        namespace[name] = value


def _fill(cell: CellType, value: Any) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _is_data(value: Any) -> bool:
    """Whether a value is data, which belongs to a run, not code, which an import or a patch put there."""
    if value is MISSING or isinstance(value, (Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, np.ndarray)):
        return True
    atom = type(value) in _ATOMS and not isinstance(value, (type, FunctionType, types.ModuleType))
    return atom or isinstance(value, (*CONTAINERS, tuple, frozenset, np.generic)) or is_object(value)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    found = [(n, old, now.get(n, MISSING)) for n, old in before.items() if now.get(n, MISSING) is not old]
    if len(now) + len(found) != len(before):
        found += [(name, MISSING, new) for name, new in now.items() if name not in before]
    return found


def _items_of(container: Any) -> Any:
    """The items of a container, in a plain one; of a dictionary the keys, and then the values.

    A class may make its items when they are asked for, as transformers' tables of models do; its own methods are not
    called.
    """
    if isinstance(container, bytearray):
        return bytes(container)
    if isinstance(container, dict):
        kind: Any = OrderedDict if isinstance(container, OrderedDict) else dict  # its order lies beside that of dict
        return [*kind.keys(container), *kind.values(container)]
    kind = next(kind for kind in CONTAINERS if isinstance(container, kind))
    return list(kind.__iter__(container))


def is_alike(one: Any, other: Any) -> bool:
    """Whether two values are one, or equal numbers or texts."""
    return one is other or (type(one) is type(other) and type(one) in (bool, int, float, str, bytes) and one == other)


def _holds_stand_in(cache: Any) -> bool:
    """Whether a function's cache holds what stands for a tensor or a size while torch.export runs."""
    return any(_is_stand_in(value) for part in gc.get_referents(cache) for value in _leaves(part, 3))


def _leaves(value: Any, depth: int) -> Iterator[Any]:
    yield value
    if depth and isinstance(value, (dict, list, tuple)):
        for item in list(value.values()) if isinstance(value, dict) else value:
            yield from _leaves(item, depth - 1)


def _is_stand_in(value: Any) -> bool:
    symbolic = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
    return symbolic or (isinstance(value, Tensor) and type(value) not in (Tensor, nn.Parameter))
