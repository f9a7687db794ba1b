"""Nested arguments and results as flat lists of tensors.

Containers are tuples, lists, mappings, dataclasses, registered pytrees, and records: objects of any other Python class
that hold tensors in their attributes, such as a key-value cache.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree

_T = TypeVar("_T")

Path: TypeAlias = "tuple[str | int, ...]"


@dataclasses.dataclass(frozen=True)
class Structure:
    """How to put tensors back where they were.

    A leaf has no `build`; its `constant` is the object itself unless it stood for a tensor.
    """

    build: Callable[[list[Any]], Any] | None = None
    children: tuple[Structure, ...] = ()
    constant: Any = None
    is_tensor: bool = False

    def unflatten(self, tensors: Sequence[Tensor]) -> Any:
        """Rebuilds the value around other tensors, in the order of `flatten`."""
        return self._fill(iter(tensors))

    def _fill(self, tensors: Iterator[Tensor]) -> Any:
        if self.is_tensor:
            return next(tensors)
        if self.build is None:
            return _fresh(self.constant)
        return self.build([child._fill(tensors) for child in self.children])


def flatten(value: Any) -> tuple[list[tuple[Path, Tensor]], Structure]:
    """Splits a nested value into its tensors, each with its path, and the structure around them.

    Everything that is neither a tensor nor a known container stays in the structure as a constant.
    """
    leaves: list[tuple[Path, Tensor]] = []
    return leaves, _flatten(value, (), leaves)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a nested value, in the order of `flatten`; asked at every call of a trace."""
    found: list[Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
        return
    kind = type(value)
    if kind in _ATOMS:
        return
    if kind is tuple or kind is list:
        for item in value:
            _collect(item, found)
    elif kind is dict:
        for item in value.values():
            _collect(item, found)
    else:
        parts = _parts(value)
        for _, item in parts[0] if parts is not None else ():
            _collect(item, found)


def constants(value: Any) -> list[tuple[Path, Any]]:
    """The leaves of a nested value that are no tensors, each with its path; None is left out."""
    found: list[tuple[Path, Any]] = []

    def walk(item: Any, path: Path) -> None:
        if isinstance(item, Tensor) or item is None:
            return
        parts = _parts(item)
        if parts is None:
            found.append((path, item))
            return
        for key, child in parts[0]:
            walk(child, (*path, key))

    walk(value, ())
    return found


def map_leaves(value: Any, change: Callable[[Any], Any], leaf: type = Tensor) -> Any:
    """A copy of a nested value with every leaf, tensor or not, replaced by ``change(leaf)``.

    Args:
        value: The value.
        change: Makes what stands for a leaf.
        leaf: A class that counts as a leaf though it is a container, as tensors do anyway.
    """
    parts = None if value is None or isinstance(value, (Tensor, leaf)) else _parts(value)
    if parts is None:
        return change(value)
    pairs, build = parts
    return build([map_leaves(child, change, leaf) for _, child in pairs])


def with_tensors(value: _T) -> _T:
    """The same nested value with tensors for numeric numpy arrays; itself where it holds none."""
    if not any(_is_numeric(leaf) for _, leaf in constants(value)):
        return value
    changed: _T = map_leaves(value, lambda leaf: torch.from_numpy(np.array(leaf)) if _is_numeric(leaf) else leaf)
    return changed


def _is_numeric(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"


def _flatten(value: Any, path: Path, leaves: list[tuple[Path, Tensor]]) -> Structure:
    if isinstance(value, Tensor):
        leaves.append((path, value))
        return Structure(is_tensor=True)
    parts = _parts(value)
    if parts is None:
        return Structure(constant=value)
    pairs, build = parts
    return Structure(build, tuple(_flatten(child, (*path, key), leaves) for key, child in pairs))


def _parts(value: Any) -> tuple[list[tuple[str | int, Any]], Callable[[list[Any]], Any]] | None:
    """Children by key, and how to build the container again; None for what is no container."""
    kind = type(value)
    if kind in _ATOMS:
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True)), lambda items: kind(*items)
    if kind in (tuple, list):
        return list(enumerate(value)), kind
    if kind in _pytree.SUPPORTED_NODES and not isinstance(value, Mapping):
        children, context = _pytree.SUPPORTED_NODES[kind].flatten_fn(value)
        rebuild = _pytree.SUPPORTED_NODES[kind].unflatten_fn
        return list(enumerate(children)), lambda items: rebuild(items, context)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass_parts(value)
    if isinstance(value, Mapping):
        keys = list(value)
        return [(k if isinstance(k, int) else str(k), value[k]) for k in keys], lambda items: _mapping(
            value, dict(zip(keys, items, strict=True))
        )
    if _holds_tensor(value, set()):
        return _record_parts(value)
    return None


_ATOMS = frozenset({int, float, bool, complex, str, type(None), torch.dtype, torch.device})
"""Most of what is no tensor among arguments; asked at every call of a trace."""


def _dataclass_parts(value: Any) -> tuple[list[tuple[str | int, Any]], Callable[[list[Any]], Any]]:
    names = [f.name for f in dataclasses.fields(value) if hasattr(value, f.name)]

    def build(items: list[Any]) -> Any:
        # Field by field, past __init__ and __post_init__, which may check or convert what they are given.
        copy = object.__new__(type(value))
        for name, item in zip(names, items, strict=True):
            object.__setattr__(copy, name, item)
        return copy

    if isinstance(value, Mapping):  # e.g. transformers' ModelOutput: fields double as items, None ones left out
        kind = type(value)
        keys = list(value)
        return [(k, value[k]) for k in keys], lambda items: kind(**dict(zip(keys, items, strict=True)))
    return [(name, getattr(value, name)) for name in names], build


def _record_parts(value: Any) -> tuple[list[tuple[str | int, Any]], Callable[[list[Any]], Any]]:
    """The attributes in which there are tensors; a copy of the record shares the others."""
    names = [name for name, item in vars(value).items() if _holds_tensor(item, {id(value)})]

    def build(items: list[Any]) -> Any:
        record = object.__new__(type(value))
        others = {n: copy.copy(v) if type(v) in (list, dict, set) else v for n, v in vars(value).items()}
        vars(record).update(others, **dict(zip(names, items, strict=True)))
        return record

    return [(name, vars(value)[name]) for name in names], build


_FOREIGN = frozenset({"builtins", "functools", "numpy", "torch", "torch_onnx_compat", "types"})
"""Packages whose objects are no records; this one's complex pairs are leaves."""


@functools.cache
def _may_be_record(kind: Any) -> bool:
    """Whether an object of this class is data, made in Python, that can be rebuilt from its attributes."""
    foreign = kind.__module__.partition(".")[0] in _FOREIGN
    special = (torch.nn.Module, type, enum.Enum, torch.Tensor, BaseException)
    return not foreign and not issubclass(kind, special) and bool(kind.__dictoffset__)


def _holds_tensor(value: Any, seen: set[int]) -> bool:
    if isinstance(value, Tensor):
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, Mapping):
        return any(_holds_tensor(item, seen) for item in value.values())
    if isinstance(value, (tuple, list)):
        return any(_holds_tensor(item, seen) for item in value)
    kind: Any = type(value)
    return _may_be_record(kind) and any(_holds_tensor(item, seen) for item in vars(value).values())


def _fresh(constant: Any) -> Any:
    """A copy of an object that a call may write to, such as a cache that is still empty."""
    kind: Any = type(constant)
    if not _may_be_record(kind):
        return constant
    try:
        return copy.deepcopy(constant)
    except Exception:  # what cannot be copied is shared, as any other constant
        return constant


def _mapping(like: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """A mapping of the same class with other items."""
    kind: Any = type(like)
    if kind is dict:
        return items
    if not isinstance(like, dict):
        return kind(items)
    try:
        made = kind(items)
        if len(made) == len(items) and all(made[key] is items[key] for key in items):
            return made
    except Exception:  # the constructor takes something else, keywords or a size
        pass
    return _past_init(like, items)


def _past_init(like: dict[Any, Any], items: dict[Any, Any]) -> Any:
    """A dict of the same class with other items, made without its own constructor.

    Attributes are the same, but for those that are an item, too.
    """
    kind: Any = type(like)
    made = kind.__new__(kind)
    attributes = getattr(like, "__dict__", {})
    if attributes is like:  # attributes are the items: ``self.__dict__ = self``
        made.__dict__ = made
    elif attributes:
        new = {id(old): items[key] for key, old in like.items() if isinstance(old, Tensor)}
        vars(made).update({name: new.get(id(value), value) for name, value in attributes.items()})
    if isinstance(like, defaultdict):
        made.default_factory = like.default_factory
    base: Any = OrderedDict if isinstance(like, OrderedDict) else dict
    for key, item in items.items():
        base.__setitem__(made, key, item)
    return made


def qualified_name(path: Path) -> str:
    """A path as text for names: ``("boxes", 0)`` is ``boxes_0``."""
    return "_".join(str(part) for part in path)
