"""Dictionaries and sets in which a size is looked up: Python compares hashes first, and nobody hears with what.

In a trace a size is found in none of them, as the hash of a tensor is its identity. So what the original finds there
has to be known: the container is read off the statement, and each of its keys is a question about the size.
"""

from __future__ import annotations

import ast
import functools
import math
import types
from collections.abc import Collection, Iterator
from numbers import Real
from typing import Any

from torch_onnx_compat.backends.checks import Place, innermost_statements
from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.backends.messages import own_nodes
from torch_onnx_compat.stack import value_at

_MOST_SIZE = 2**63
"""What no size reaches."""

MOST = 16
"""Keys with numbers, in one container, that are compared; each of them may be a case for the proof."""


def containers_at(frame: types.FrameType) -> tuple[Collection[Any], ...] | None:
    """The dictionaries and sets in which a statement looks something up; None where it is not known which they are."""
    place = Place.of(frame)
    named = containers_named(place) or ()
    found = [part if isinstance(part, frozenset) else value_at(part, frame) for part in named]
    known = tuple(one for one in found if isinstance(one, (dict, set, frozenset)))
    if len(known) < len(found) and place.column is not None:
        return None  # without a column, others are what else stands in the line, such as x.shape[0]
    return known if known and all(sum(map(_has_number, one)) <= MOST for one in known) else None


def holds_numbers(container: Collection[Any]) -> bool:
    """Whether a size may be found in a container, as far as its keys tell."""
    return any(map(_has_number, container))


def _has_number(key: Any) -> bool:
    """Whether a number is a part of a key, other than that of a size: tensors in a trace, symbolic in a run without."""
    return any(isinstance(number, int) for number in numbers_in(key))


def numbers_in(key: Any) -> Iterator[Any]:
    """The whole numbers in a key, and the expressions of its symbolic ones, in their order."""
    if symbolic.is_symbolic(key):
        yield key.node.expr
    elif isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from numbers_in(part)
    elif isinstance(key, Real):
        number: Any = key
        if abs(number) < _MOST_SIZE and math.trunc(number) == number:
            yield math.trunc(number)


# What a statement looks keys up in


_LOOK_UPS = frozenset(
    {
        *("get", "pop", "setdefault", "add", "discard", "remove"),
        *("__contains__", "__getitem__", "__setitem__", "__delitem__"),
    }
)
"""Methods of dictionaries and sets that look one key up."""

_OF_MANY_KEYS = frozenset(
    {
        *("update", "fromkeys", "union", "intersection", "difference", "symmetric_difference", "intersection_update"),
        *("difference_update", "symmetric_difference_update", "issubset", "issuperset", "isdisjoint"),
    }
)
"""Methods that look up all that they are given."""


@functools.lru_cache(maxsize=512)
def containers_named(place: Place) -> tuple[str | frozenset[Any], ...] | None:
    """What the expression at a place looks keys up in: a path such as ``self.tables``, or the keys that stand there.

    None where the expression hashes otherwise: it makes a set, or hands the key to a function. Where Python does not
    tell which expression of the line runs, all that the line looks something up in, as far as these are names.
    """
    statement = next(innermost_statements(place), None)
    nodes = [] if statement is None else [node for node in own_nodes(statement) if isinstance(node, ast.expr)]
    here = [n for n in nodes if n.lineno == place.line and place.column in (None, n.col_offset)]
    here = [n for n in here if place.end in (None, (n.end_lineno, n.end_col_offset))]
    found: list[str | frozenset[Any]] = []
    for node in here:
        if _hashes_more(node):
            return None
        for owner in _looked_up_in(node):
            keys = _literal_keys(owner)
            if keys is not None or _is_path(owner):
                found.append(ast.unparse(owner) if keys is None else keys)
            elif place.column is not None:
                return None
    return tuple(found) or None


def _looked_up_in(node: ast.AST) -> list[ast.expr]:
    """The containers that a node itself looks a key up in."""
    if isinstance(node, ast.Compare):
        return [c for op, c in zip(node.ops, node.comparators, strict=True) if isinstance(op, (ast.In, ast.NotIn))]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOOK_UPS:
        return [node.func.value]
    return []


def _hashes_more(node: ast.AST) -> bool:
    """Whether a node makes a dictionary or a set of what is computed, or may hash all that it is given."""
    if isinstance(node, (ast.Dict, ast.Set)):
        return _literal_keys(node) is None
    is_hashing = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MANY_KEYS
    return is_hashing or isinstance(node, (ast.DictComp, ast.SetComp))


def _literal_keys(node: ast.expr) -> frozenset[Any] | None:
    """The keys of a dictionary, or of a set, that is written out; None for anything else."""
    keys = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.Set) else None
    if keys is None or None in keys:
        return None
    try:
        return frozenset(ast.literal_eval(key) for key in keys if key is not None)
    except ValueError:
        return None


def _is_path(node: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of one, of one of its attributes, and so on."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
