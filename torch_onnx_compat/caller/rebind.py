"""Functions on a twin's modules that refer to the caller's model: hooks, and `m.forward = lambda x: inner(m, x)`.

A copy of a module shares its functions with the caller's. One whose closure or defaults hold the caller's modules or
tensors would run these, so the twin gets a copy of the function that holds the twin's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat.caller.snapshot import is_object

Functions = list[tuple[FunctionType, FunctionType]]
"""Copies of functions, each with the function that it was made from."""


def rebind_functions(twin: nn.Module, memo: dict[int, Any], copy: Callable[[nn.Module], nn.Module]) -> Functions:
    """Exchanges the functions on a twin's modules that refer to what the twin has copies of.

    Args:
        twin: The copy of a model.
        memo: The copies by the numbers of what they were made from, as copy.deepcopy keeps them.
        copy: Copies a module that the functions use and the model does not hold.

    Returns:
        The functions that the twin has instead.
    """
    memo.update({id(module): module for module in twin.modules()})  # what deepcopy has exchanged already
    rebinder = _Rebinder(memo, copy)
    exchange = _Exchange(rebinder, {id(value) for key, value in memo.items() if id(value) != key})
    for module in list(twin.modules()):
        attributes = vars(module)
        tables = ("_modules", "_parameters", "_buffers")
        exchange.items(attributes, [item for item in attributes.items() if item[0] not in tables])
    return rebinder.functions


class _Exchange:
    """Exchanges functions wherever a twin's attributes lead to: in containers, and in objects that were copied.

    Args:
        rebinder: Knows what the functions are exchanged for.
        copies: The numbers of what is the twin's own.
    """

    def __init__(self, rebinder: _Rebinder, copies: set[int]) -> None:
        self._rebinder, self._copies = rebinder, copies
        self._seen: set[int] = set()

    def items(self, holder: Any, items: list[tuple[Any, Any]]) -> None:
        """Exchanges those in a dictionary or a list, given with its keys."""
        for key, item in items:
            new = self._of(item)
            if new is not item:
                holder[key] = new

    def _of(self, value: Any) -> Any:
        """The value itself, but for functions and tuples of them."""
        kind = type(value)  # a proxy passes on what isinstance asks
        if kind in _CALLABLES:
            return self._rebinder.of(value)
        if kind is tuple:
            news = tuple(map(self._of, value))
            return news if any(new is not old for new, old in zip(news, value, strict=True)) else value
        if id(value) not in self._seen:
            self._enter(value, kind)
        return value

    def _enter(self, value: Any, kind: type) -> None:
        if issubclass(kind, (dict, list)):
            self._seen.add(id(value))
            items = dict.items(value) if issubclass(kind, dict) else enumerate(list.__iter__(value))
            self.items(value, list(items))
        elif id(value) in self._copies and is_object(value) and not issubclass(kind, nn.Module):
            self._seen.add(id(value))
            self.items(vars(value), list(vars(value).items()))


_CALLABLES = (FunctionType, MethodType, functools.partial)
_CONTAINERS = (list, tuple, dict, set)


class _Rebinder:
    """Gives values that refer to a twin's parts instead of the model's."""

    def __init__(self, memo: dict[int, Any], copy: Callable[[nn.Module], nn.Module]) -> None:
        self.functions: Functions = []
        self._memo, self._copy = memo, copy
        self._known: dict[int, tuple[Any, bool]] = {}
        """Values, and whether they refer to the model."""

    def of(self, value: Any) -> Any:
        """The value for the twin; itself if it does not refer to the model."""
        if id(value) in self._memo:
            return self._memo[id(value)]
        if isinstance(value, nn.Module):
            return self._copy_module(value)
        if not self._refers(value):
            return value
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            new: Any = MethodType(self.of(value.__func__), self.of(value.__self__))
        elif isinstance(value, functools.partial):
            keywords = {name: self.of(item) for name, item in value.keywords.items()}
            new = functools.partial(self.of(value.func), *map(self.of, value.args), **keywords)
        elif type(value) is dict:
            new = {key: self.of(item) for key, item in value.items()}
        else:
            new = type(value)(map(self.of, value))
        self._memo[id(value)] = new
        return new

    def _function(self, function: FunctionType) -> FunctionType:
        cells = tuple(CellType() for _ in function.__closure__ or ())
        new = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
        self._memo[id(function)] = new  # before the closure, which may hold the function itself
        functools.update_wrapper(new, function, updated=())
        vars(new).pop("__wrapped__", None)
        vars(new).update({name: self.of(value) for name, value in vars(function).items()})
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            for value in _contents(old):
                cell.cell_contents = self.of(value)
        new.__defaults__ = None if function.__defaults__ is None else tuple(map(self.of, function.__defaults__))
        keywords = function.__kwdefaults__
        new.__kwdefaults__ = None if keywords is None else {n: self.of(v) for n, v in keywords.items()}
        self.functions.append((new, function))
        return new

    def _copy_module(self, module: nn.Module) -> Any:
        try:
            return self._copy(module)
        except Exception:  # a module that cannot be copied is shared
            self._memo[id(module)] = module
            return module

    def _refers(self, value: Any) -> bool:
        """Whether a value is, or holds, a part of the model."""
        if id(value) in self._known:
            return self._known[id(value)][1]
        if isinstance(value, nn.Module):
            return True
        if isinstance(value, Tensor):
            return id(value) in self._memo
        self._known[id(value)] = (value, False)  # while its parts are asked
        found = any(self._refers(part) for part in _parts(value))
        self._known[id(value)] = (value, found)
        return found


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            yield from _contents(cell)
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values())
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif type(value) in _CONTAINERS:
        yield from list(value.values()) if type(value) is dict else list(value)


def _contents(cell: CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # not bound yet
        return
