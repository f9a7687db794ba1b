"""What a model's code can write to outside of its modules: class attributes, globals, closures, defaults, caches.

It is found from the code: the names that the functions use, followed from forward through the functions, classes and
objects that they name. Code of torch, numpy and Python itself is not followed.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any

from torch import Tensor, nn

MOST_FUNCTIONS = 5000
"""Functions that are followed; a model's code has far fewer."""

MOST_ITEMS = 2000
"""Items of a container up to which they are looked at one by one."""

_NOT_FOLLOWED = frozenset(
    {
        *("torch", "numpy", "torch_onnx_compat", "onnx", "onnxscript", "onnx_ir", "onnxruntime", "greenlet", "_pytest"),
        # torch's arithmetic of sizes: sympy alone has more functions than are followed.
        *("sympy", "mpmath"),
    }
)
"""Packages whose code keeps nothing of a model's."""

_Cache: Any = type(functools.lru_cache(lambda: None))
_HOOKS = (FunctionType, types.MethodType, functools.partial, _Cache)
CONTAINERS = (dict, list, set, deque, bytearray)
MISSING: Any = object()


def is_followed(name: str | None) -> bool:
    """Whether code of a Python module is the model's or that of a library of models."""
    package = (name or "").partition(".")[0]
    return package not in _NOT_FOLLOWED and (package == "__main__" or package not in sys.stdlib_module_names)


@dataclass
class Reach:
    """Where the code of a model can write to outside of its modules."""

    classes: dict[int, type] = field(default_factory=dict)
    names: dict[tuple[int, str], tuple[dict[str, Any], str]] = field(default_factory=dict)
    """Names in the namespaces of Python modules."""
    cells: dict[int, CellType] = field(default_factory=dict)
    objects: dict[int, Any] = field(default_factory=dict)
    """Containers and objects that functions hold otherwise: defaults, attributes of functions."""
    caches: dict[int, Any] = field(default_factory=dict)
    """Functions with functools.lru_cache."""
    python_modules: set[str] = field(default_factory=set)
    """Names of those that the functions are defined in."""
    handlers: list[FunctionType] = field(default_factory=list)
    """Functions that may have exception handlers."""
    compares_objects: bool = False
    """Whether a function asks if two things are one object, as ``x.contiguous() is x`` does."""
    written: set[int] = field(default_factory=set)
    """Addresses of the memory that a run wrote to."""
    used: set[str] = field(default_factory=set)
    """Names in the code of the functions."""
    snapshot: Any = field(default=None, init=False, repr=False, compare=False)
    """What lay within reach when a run began last."""


def find_reach(model: nn.Module) -> Reach:
    """What the code of a model can write to outside of its modules."""
    search = _Search(model)
    for module in model.modules():
        search.add_class(type(module))
        for value in vars(module).values():
            search.add_name(value)
            hooks = dict.values(value) if isinstance(value, dict) else (value,)
            if any(isinstance(item, _HOOKS) for item in hooks):
                search.follow(value)
    search.follow_names()
    return search.reach


class _Search:
    """Follows the names that functions use."""

    def __init__(self, model: nn.Module) -> None:
        self.reach = Reach()
        self._own = {id(module) for module in model.modules()}
        self._used = {"forward", "__call__", "__enter__", "__exit__"}
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        self._functions = 0

    def follow_names(self) -> None:
        """Follows the methods whose names are used, until there is no new one."""
        done: set[tuple[int, str]] = set()
        while True:
            beginnings = tuple(name for name in self._used if name.endswith("_") and len(name) > 2)  # f"forward_{mode}"
            new = [
                (cls, name)
                for cls in list(self.reach.classes.values())
                for name in vars(cls)
                if (name in self._used or name.startswith(beginnings)) and (id(cls), name) not in done
            ]
            if not new:
                return
            for cls, name in new:
                done.add((id(cls), name))
                self.follow(vars(cls)[name])

    def add_class(self, kind: type) -> None:
        """Takes the attributes of a class and of its bases."""
        for base in kind.__mro__:
            if id(base) not in self.reach.classes and is_followed(base.__module__):
                self.reach.classes[id(base)] = base
                for value in vars(base).values():
                    self.add_name(value)

    def add_name(self, value: Any) -> None:
        """Counts a text as a name that is used: ``getattr(self, self.mode)``."""
        if isinstance(value, str) and value.isidentifier():
            self._used.add(value)

    def follow(self, value: Any) -> None:
        """Follows the functions and classes that a value is or holds."""
        if id(value) in self._seen or self._functions > MOST_FUNCTIONS:
            return
        follow = _FOLLOWED.get(type(value))
        if follow is None:
            follow = self._kind_of(value)
            if follow is None:
                return
        self._seen.add(id(value))
        self._alive.append(value)  # its number stays its own
        follow(self, value)

    def _kind_of(self, value: Any) -> Any:
        if isinstance(value, type):
            return _Search.add_class if is_followed(value.__module__) else None
        if isinstance(value, CONTAINERS):
            return _Search._follow_items
        if isinstance(value, nn.Module):
            return None if id(value) in self._own else _Search._follow_module
        is_object = hasattr(value, "__dict__") and not isinstance(value, (Tensor, types.ModuleType))
        return _Search._follow_object if is_object and is_followed(type(value).__module__) else None

    def _follow_function(self, function: FunctionType) -> None:
        if not is_followed(function.__module__):
            return
        self._functions += 1
        self.reach.python_modules.add(function.__module__ or "")  # exec has no module
        if _may_have_handlers(function.__code__):
            self.reach.handlers.append(function)
        self.reach.compares_objects |= _compares_objects(function.__code__)
        names = set(_names_in(function.__code__))
        self._used |= names
        self.reach.used |= names
        self._follow_in(function.__globals__, names)
        for cell in function.__closure__ or ():
            self.reach.cells[id(cell)] = cell
            with suppress(ValueError):  # an empty cell
                self.follow(cell.cell_contents)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), vars(function)):
            if isinstance(value, CONTAINERS):
                self.reach.objects[id(value)] = value
            self.follow(value)
        self.follow(getattr(function, "__wrapped__", None))

    def _follow_in(self, namespace: dict[str, Any], names: set[str]) -> None:
        for name in names:
            value = namespace.get(name, MISSING)
            if isinstance(value, types.ModuleType):
                if is_followed(value.__name__):
                    self._follow_in_module(value, names)
            elif value is not MISSING or name not in _BUILTINS:
                self.reach.names[id(namespace), name] = (namespace, name)
                self.follow(value)

    def _follow_in_module(self, module: types.ModuleType, names: set[str]) -> None:
        """What a function reads off an imported module by name."""
        namespace = vars(module)
        for name in names & namespace.keys():
            value = namespace[name]
            if not isinstance(value, types.ModuleType):
                self.reach.names[id(namespace), name] = (namespace, name)
                self.follow(value)
            elif is_followed(value.__name__) and (id(value), name) not in self._entered:
                self._entered.add((id(value), name))
                self._follow_in_module(value, names)

    @functools.cached_property
    def _entered(self) -> set[tuple[int, str]]:
        return set()

    def _follow_method(self, method: types.MethodType) -> None:
        self.follow(method.__func__)
        self.follow(method.__self__)

    def _follow_wrapper(self, wrapper: Any) -> None:
        self.follow(wrapper.__func__)

    def _follow_property(self, value: property) -> None:
        for function in (value.fget, value.fset):
            self.follow(function)

    def _follow_partial(self, value: functools.partial[Any]) -> None:
        for item in (value.func, *value.args, *value.keywords.values()):
            self.follow(item)

    def _follow_cache(self, cache: Any) -> None:
        if is_followed(cache.__wrapped__.__module__):
            self.reach.caches[id(cache)] = cache
            self.follow(cache.__wrapped__)

    def _follow_items(self, container: Any) -> None:
        for item in values_in(container):
            self.follow(item)

    def _follow_object(self, value: Any) -> None:
        self.add_class(type(value))
        self._follow_items(vars(value))

    def _follow_module(self, module: nn.Module) -> None:
        """A module that the model uses without holding it."""
        for inner in module.modules():
            self.add_class(type(inner))
            self.reach.objects[id(inner)] = inner


_FOLLOWED: dict[type, Any] = {
    FunctionType: _Search._follow_function,
    types.MethodType: _Search._follow_method,
    staticmethod: _Search._follow_wrapper,
    classmethod: _Search._follow_wrapper,
    property: _Search._follow_property,
    functools.partial: _Search._follow_partial,
    _Cache: _Search._follow_cache,
    tuple: _Search._follow_items,
}
_BUILTINS = frozenset(dir(__builtins__) if isinstance(__builtins__, types.ModuleType) else __builtins__)


_BY_TEXT = frozenset({"getattr", "setattr", "delattr", "globals", "vars", "__dict__", "attrgetter", "methodcaller"})
"""Names in code that reads or binds others by their texts."""


@functools.cache
def _names_in(code: CodeType) -> frozenset[str]:
    """The names that a function's code, and the functions defined in it, use; texts where it reads by a name's text."""
    inner = (name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names_in(constant))
    texts = [one for one in code.co_consts if isinstance(one, str)] if _BY_TEXT.intersection(code.co_names) else []
    return frozenset((*code.co_names, *inner, *filter(str.isidentifier, texts)))


@functools.cache
@functools.cache
def _compares_objects(code: CodeType) -> bool:
    """Whether code asks if two things are one, other than for a constant such as None."""
    operations = code.co_code[::2]
    before = (operations[at - 1] for at, operation in enumerate(operations) if operation == _IS)
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return "id" in code.co_names or any(one != _LOADS for one in before) or any(map(_compares_objects, inner))


_IS, _LOADS = dis.opmap["IS_OP"], dis.opmap["LOAD_CONST"]


def _may_have_handlers(code: CodeType) -> bool:
    """Whether a function, or one inside it, has an except or a finally, or is one; a `with` alone is none."""
    if code.co_name == "__exit__":
        return True
    operations = code.co_code[::2]
    may = operations.count(_BEGINS) > (operations.count(_LEAVES_WITH) if _BEGINS_HANDLER else 0)
    return may or any(isinstance(constant, CodeType) and _may_have_handlers(constant) for constant in code.co_consts)


_BEGINS_HANDLER = dis.opmap.get("PUSH_EXC_INFO")
"""The operation with which Python, from 3.11 on, begins a handler, and the end of a `with` after an error."""
_BEGINS = _BEGINS_HANDLER or dis.opmap["SETUP_FINALLY"]
_LEAVES_WITH = dis.opmap["WITH_EXCEPT_START"]


def values_in(container: Any) -> list[Any]:
    """The values in a container that is not too large to look at each."""
    if isinstance(container, dict):
        return list(dict.values(container)) if dict.__len__(container) <= MOST_ITEMS else []
    return [] if isinstance(container, bytearray) or len(container) > MOST_ITEMS else list(container)
