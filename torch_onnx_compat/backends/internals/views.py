"""Operators that give several views at once, as operators that give one."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, Node


def take_single_views(program: ExportedProgram) -> None:
    """Takes a part of a tensor that is written to by itself: ``x.unbind(-1)[0]`` as ``x.select(-1, 0)``.

    Torch makes a write to one of several views at once functional by fixing all of its sizes at those of the example.
    """
    graph = program.graph
    if any(isinstance(node.target, OpOverload) and node.target._schema.is_mutable for node in graph.nodes):
        for node in list(graph.nodes):
            take = _TAKES.get(node.target)
            for user in list(node.users):
                if take is not None and user.target is operator.getitem:
                    _replace(graph, user, take(node, user.args[1]))
        program.graph_module.recompile()


def _replace(graph: Graph, part: Node, taken: tuple[Any, ...] | None) -> None:
    if taken is None:
        return
    target, *args = taken
    with graph.inserting_before(part):
        view = graph.call_function(target, tuple(args))
    view.meta = dict(part.meta)
    part.replace_all_uses_with(view)
    graph.erase_node(part)


def _of_unbind(node: Node, index: int) -> tuple[Any, ...]:
    return torch.ops.aten.select.int, node.args[0], _dim(node, 1), index


def _of_split(node: Node, index: int) -> tuple[Any, ...] | None:
    length: Any = node.args[1]
    if not isinstance(length, int):
        return None
    return torch.ops.aten.slice.Tensor, node.args[0], _dim(node, 2), index * length, (index + 1) * length


def _of_split_with_sizes(node: Node, index: int) -> tuple[Any, ...] | None:
    lengths: Any = node.args[1]
    if not all(isinstance(length, int) for length in lengths):
        return None
    start, end = list(itertools.accumulate(lengths, initial=0))[index : index + 2]
    return torch.ops.aten.slice.Tensor, node.args[0], _dim(node, 2), start, end


def _dim(node: Node, place: int) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get("dim", 0)


_TAKES: dict[Any, Callable[[Node, int], tuple[Any, ...] | None]] = {
    torch.ops.aten.unbind.int: _of_unbind,
    torch.ops.aten.split.Tensor: _of_split,
    torch.ops.aten.split_with_sizes.default: _of_split_with_sizes,
}
"""The operator and the arguments that give one of a node's views."""
