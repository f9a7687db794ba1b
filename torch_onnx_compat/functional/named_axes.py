"""Tensors laid out along axes with names, as einx describes them: ``"b (h d), h -> b h d"``.

Math:   an axis in parentheses is taken apart, a tensor's axes are put in the result's order, and where it has none of a
        name its size is 1. What is computed element by element then needs no more than broadcasting.
Source: https://einx.readthedocs.io/en/stable/gettingstarted/tutorial_notation.html
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Groups = list[list[str]]
"""The axes of a tensor, each with the names that it is composed of; a name is followed by ``*`` where it is a 1."""

_TOKEN = re.compile(r"\s*(\(|\)|\.\.\.(?=[\s,()]|$)|[A-Za-z_]\w*(?=[\s,()]|$)|1(?=[\s,()]|$))")
_ONE = "*"


class NotNamed(Exception):
    """A description is beyond what is computed here."""


def elementwise(
    function: Callable[..., Tensor], description: str, tensors: Sequence[Any], sizes: Mapping[str, Any]
) -> Tensor:
    """A function of tensors that is computed element by element.

    Args:
        function: Takes tensors that broadcast.
        description: The axes of each tensor, and behind ``->`` those of the result; without, those of the tensor that
            has all.
        tensors: Tensors, and numbers where a description is empty.
        sizes: Of axes that no tensor tells.

    Raises:
        NotNamed: The description has more than names, 1, ``...`` and parentheses, or does not fit.
    """
    before, arrow, after = description.partition("->")
    inputs = [_parse(text) for text in before.split(",")]
    if len(inputs) != len(tensors):
        raise NotNamed("as many descriptions as tensors")
    inputs = [_without_ellipsis(groups, value) for groups, value in zip(inputs, tensors, strict=True)]
    rest = [name for groups in inputs for group in groups for name in group if name.startswith("...")]
    output = _spread(_parse(after), list(dict.fromkeys(rest))) if arrow else _widest(inputs)
    names = [name for group in output for name in group if not name.endswith(_ONE)]
    known = _known_sizes(inputs, tensors, sizes)
    if len(set(names)) != len(names) or not set(names) >= known.keys() or not known.keys() >= set(names):
        raise NotNamed("an axis that the result has twice, not at all, or alone")
    result = function(*(_laid_out(*pair, known, names) for pair in zip(tensors, inputs, strict=True)))
    return _composed(result, output)


def _parse(text: str) -> Groups:
    groups: Groups = []
    inside: list[str] | None = None
    place, count = 0, itertools.count()
    text = text.strip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise NotNamed(text)
        place, name = token.end(), token[1]
        if name == "(" and inside is None:
            inside = []
        elif name == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif name in "()" or (name == "..." and inside is not None):
            raise NotNamed(text)
        else:
            name = f"{next(count)}{_ONE}" if name == "1" else name
            (groups.append([name]) if inside is None else inside.append(name))
    if inside is not None:
        raise NotNamed(text)
    return groups


def _without_ellipsis(groups: Groups, value: Any) -> Groups:
    """The axes of a tensor with names for those that ``...`` stands for."""
    dims = value.dim() if isinstance(value, Tensor) else 0
    more = dims - sum(group != ["..."] for group in groups)
    groups = _spread(groups, [f"...{index}" for index in range(more)])
    if len(groups) != dims:
        raise NotNamed("as many axes as the tensor has")
    return groups


def _spread(groups: Groups, names: list[str]) -> Groups:
    return [one for group in groups for one in ([[name] for name in names] if group == ["..."] else [group])]


def _widest(inputs: Sequence[Groups]) -> Groups:
    """The axes of the one tensor that has all axes."""
    sets = [{name for group in groups for name in group} for groups in inputs]
    widest = [groups for groups, own in zip(inputs, sets, strict=True) if own >= set().union(*sets)]
    if any(groups != widest[0] for groups in widest[1:]) or not widest:
        raise NotNamed("no tensor that has all axes")
    return widest[0]


def _known_sizes(inputs: Sequence[Groups], tensors: Sequence[Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The size of each axis; of one in parentheses, what the others leave."""
    pairs = [
        (group, size)
        for groups, value in zip(inputs, tensors, strict=True)
        if isinstance(value, Tensor)
        for group, size in zip(groups, value.shape, strict=True)
    ]
    named = {name for group, _ in pairs for name in group if not name.endswith(_ONE)}
    known = {name: size for name, size in sizes.items() if name in named}
    known |= {group[0]: size for group, size in pairs if len(group) == 1 and not group[0].endswith(_ONE)}
    for group, size in pairs:
        open_ones = [name for name in group if name not in known and not name.endswith(_ONE)]
        if len(open_ones) > 1:
            raise NotNamed(f"the sizes of {' and '.join(open_ones)}")
        if open_ones:
            others = [known[name] for name in group if name in known]
            known[open_ones[0]] = size // functools.reduce(operator.mul, others, 1)
    return known


def _laid_out(value: Any, groups: Groups, known: Mapping[str, Any], order: Sequence[str]) -> Any:
    """A tensor along axes in an order, of size 1 where it has none of a name; a number as it is."""
    if not isinstance(value, Tensor):
        return value
    flat = [name for group in groups for name in group]
    if any(len(group) != 1 for group in groups):
        value = value.reshape([1 if name.endswith(_ONE) else known[name] for name in flat])
    for dim in reversed([dim for dim, name in enumerate(flat) if name.endswith(_ONE)]):
        value = value.select(dim, 0)
    flat = [name for name in flat if not name.endswith(_ONE)]
    if len(set(flat)) != len(flat):
        raise NotNamed("an axis that a tensor has twice")
    value = value.permute([flat.index(name) for name in order if name in flat])
    for dim, name in enumerate(order):
        value = value if name in flat else value.unsqueeze(dim)
    return value


def _composed(result: Tensor, groups: Groups) -> Tensor:
    """A result along single axes, with those in parentheses put together, and axes of 1."""
    for dim, group in enumerate(groups):
        count = sum(not name.endswith(_ONE) for name in group)
        if count == 0:
            result = result.unsqueeze(dim)
        elif count > 1:
            result = result.flatten(dim, dim + count - 1)
    return result


def identity(value: Tensor) -> Tensor:
    """The tensor itself, for descriptions that only move elements."""
    return value


def number_or_tensor(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of two tensors that takes a number in place of either."""

    def run(a: Any, b: Any) -> Tensor:
        tensor = a if isinstance(a, Tensor) else b
        a, b = (x if isinstance(x, Tensor) else torch.full((), x, dtype=tensor.dtype) for x in (a, b))
        return function(a, b)

    return run
