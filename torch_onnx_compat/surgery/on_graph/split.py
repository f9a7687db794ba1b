"""Splits a graph into a chain of stages at values that the caller named."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.graph.excerpt import ancestors, excerpt, is_constant, operands_of
from torch_onnx_compat.surgery.on_graph.stage import Stage, make_stage


def split(model: ir.Model, cuts: Sequence[tuple[str, Sequence[ir.Value]]]) -> tuple[Stage, ...]:
    """Splits a model after some values, in the order in which they are computed.

    A value that crosses a cut, such as a skip connection, becomes an output of its part and an input of the parts that
    read it. A part's inputs are in the order of the outputs of the part before, and then others; the outputs of the
    last part are in the model's order.

    Args:
        model: The model; it is not changed.
        cuts: The name of each cut, and its values.

    Raises:
        CompatError: A part would be empty, since the cuts are out of order, or one is at the model's end.
    """
    parts = _partition(model, cuts)
    finals = list(model.graph.outputs)
    stages = []
    outputs: list[ir.Value] = []
    for index, nodes in enumerate(parts):
        later = {node for part in parts[index + 1 :] for node in part}
        made = [output for node in model.graph if node in nodes for output in node.outputs]
        read_later = {id(value) for node in later for value in operands_of(node)}
        before, outputs = outputs, [v for v in made if id(v) in read_later or any(v is final for final in finals)]
        mine = {id(value) for value in made}
        inputs = {id(v): v for node in model.graph if node in nodes for v in operands_of(node) if id(v) not in mine}
        needed = _in_order_of(before, [v for v in inputs.values() if not is_constant(v)])
        if not later:
            outputs = _in_order_of(finals, outputs)
        stages.append(make_stage(f"part{index + 1}", excerpt(model, needed, outputs, f"part{index + 1}")))
    return tuple(stages)


def _in_order_of(first: Sequence[ir.Value], values: Sequence[ir.Value]) -> list[ir.Value]:
    """The values, those that are among the first ones before the others, and in the same order."""
    ranks = {id(value): rank for rank, value in enumerate(first)}
    return sorted(values, key=lambda value: ranks.get(id(value), len(ranks)))


def _partition(model: ir.Model, cuts: Sequence[tuple[str, Sequence[ir.Value]]]) -> list[set[ir.Node]]:
    parts: list[set[ir.Node]] = []
    assigned: set[ir.Node] = set()
    for name, values in (*cuts, ("the model's end", list(model.graph.outputs))):
        part = ancestors(values) - assigned
        if not part:
            before = cuts[len(parts) - 1][0] if parts else "the input"
            raise ArgumentError(
                f"split: nothing is computed between {before!r} and {name!r}; name the cuts in the order in which they "
                f"are computed, the last before the model's end."
            )
        parts.append(part)
        assigned |= part
    return parts
