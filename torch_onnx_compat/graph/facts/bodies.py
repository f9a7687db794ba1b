"""Facts of operators with bodies, of whose values an engine may want to know more than ONNX asks.

* ranks, of an If or Loop: unknown where the file tells a value's type inside of it and not its rank, else known;
* branches, of an If: arithmetic where a branch combines two values cell by cell, or multiplies matrices; else other;
* result_sizes, of an If: vary where not all sizes of its results are known, else known;
* later_nodes, of an If: compute where nodes that need not run before it do more than compute cell by cell, else none;
* sequence, of a ConcatFromSequence: far where it comes from outside of the body, or from an If or a SequenceMap; else
  near;
* condition, of a Loop: constant where the condition that it begins with is, or the one that its body gives; else
  computed;
* carried, of a Loop: unread where its body gives a value to the next round that no node of it reads; else read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.walk import all_nodes, inner_graphs

_ARITHMETIC = frozenset(
    {"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Gemm", "Greater"}
    | {"GreaterOrEqual", "Less", "LessOrEqual", "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub"}
    | {"Sum", "Where", "Xor"}
)
_CELLWISE = (_ARITHMETIC - {"Gemm", "MatMul"}) | {
    "Abs",
    "Cast",
    "Exp",
    "Identity",
    "Neg",
    "Relu",
    "Shape",
    "Sigmoid",
    "Tanh",
}


def _bodies(node: ir.Node) -> list[ir.Graph]:
    return [found.as_graph() for found in node.attributes.values() if found.type == ir.AttributeType.GRAPH]


def _ranks(bodies: list[ir.Graph]) -> dict[str, Any]:
    values = [value for body in bodies for node in all_nodes(body) for value in node.outputs]
    told = [value for value in values if value.dtype is not None or value.is_graph_output()]
    return {"ranks": "unknown" if any(value.shape is None for value in told) else "known"}


def _if(node: ir.Node) -> dict[str, Any]:
    bodies = _bodies(node)
    combines = any(_is_arithmetic(inner) for body in bodies for inner in all_nodes(body))
    are_known = all(value.shape is not None and value.shape.is_static() for value in node.outputs)
    return {
        "branches": "arithmetic" if combines else "other",
        "result_sizes": "known" if are_known else "vary",
        "later_nodes": "compute" if _runs_before_others(node) else "none",
        **_ranks(bodies),
    }


def _runs_before_others(node: ir.Node) -> bool:
    """Whether nodes of the graph may run after this one that do more than compute cell by cell."""
    others = [one for one in node.graph or () if not _is_cellwise(one)]
    if not others:
        return False
    needed, queue = {node}, [node]
    while queue:
        one = queue.pop()
        read = chain(one.inputs, *(inner.inputs for inner in _inner_nodes(one)))
        new = {source for value in read if value is not None and (source := value.producer()) is not None} - needed
        needed |= new
        queue += new
    return any(one not in needed for one in others)


def _inner_nodes(node: ir.Node) -> Iterator[ir.Node]:
    return chain.from_iterable(map(all_nodes, inner_graphs(node)))


def _is_cellwise(node: ir.Node) -> bool:
    return not node.domain and node.op_type in _CELLWISE


def _is_arithmetic(node: ir.Node) -> bool:
    is_power = node.op_type == "Pow" and constant_tensor(node.inputs[1]) is not None
    return node.op_type in _ARITHMETIC and not node.domain and not is_power


def _loop(node: ir.Node) -> dict[str, Any]:
    bodies = _bodies(node)
    body = bodies[0]
    carried = list(body.outputs)[1 : len(node.inputs) - 1]
    is_read = all(value.uses() or list(body.outputs).count(value) > 1 for value in carried)
    is_constant = _is_constant(node.inputs[1]) or _is_constant(body.outputs[0])
    return {
        "condition": "constant" if is_constant else "computed",
        "carried": "read" if is_read else "unread",
        **_ranks(bodies),
    }


def _is_constant(value: ir.Value | None) -> bool:
    """Whether a value is a constant, perhaps behind nodes that give it another name."""
    while value is not None and (source := value.producer()) is not None and source.op_type == "Identity":
        value = source.inputs[0]
    return value is not None and constant_tensor(value) is not None


def _joint(node: ir.Node) -> dict[str, Any]:
    sequence = node.inputs[0]
    source = sequence.producer() if sequence is not None else None
    is_near = source is not None and source.graph is node.graph and source.op_type not in ("If", "SequenceMap")
    return {"sequence": "near" if is_near else "far"}


BODY_FACTS: Mapping[str, Callable[[ir.Node], dict[str, Any]]] = {"If": _if, "Loop": _loop, "ConcatFromSequence": _joint}
"""The function that finds an operator's facts, by operator."""
