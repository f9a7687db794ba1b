"""The arguments and results of operators, walked through: tuples, lists and dicts of tensors and numbers.

pytree knows every container, and takes a tenth of a millisecond for a call; a symbolic run makes thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

_LEAVES = frozenset(
    {int, float, bool, complex, str, type(None), torch.SymInt, torch.SymFloat, torch.SymBool}
    | {torch.dtype, torch.device, torch.layout, torch.memory_format}
)


def leaves_of(value: Any) -> list[Any]:
    """What containers hold, in order, as pytree.tree_leaves has it."""
    found: list[Any] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Any]) -> None:
    kind = type(value)
    if kind is tuple or kind is list:
        for item in value:
            _collect(item, found)
    elif kind is dict:
        for item in value.values():
            _collect(item, found)
    elif kind in _LEAVES or isinstance(value, Tensor):
        found.append(value)
    else:
        found += pytree.tree_leaves(value)


def replace_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same containers with ``change(leaf)`` in place of every leaf, as pytree.tree_map makes them."""
    kind = type(value)
    if kind is tuple:
        return tuple([replace_leaves(item, change) for item in value])
    if kind is list:
        return [replace_leaves(item, change) for item in value]
    if kind is dict:
        return {name: replace_leaves(item, change) for name, item in value.items()}
    if kind in _LEAVES or isinstance(value, Tensor):
        return change(value)
    return pytree.tree_map(change, value)
