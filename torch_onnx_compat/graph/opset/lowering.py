"""The tables of rules, and the decorators that fill them.

A rule takes one operator one step down. ``@lowering("Gelu", below=20)`` says: a Gelu as opset 20 and later mean it can
be written in the operators of opset 19, and this function does it. The rule never asks how far down the model goes:
what it writes is taken further by the rules of lower opsets. Rules live in the rules_*.py files, by family; a new file
is imported by opset.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder

Outputs: TypeAlias = "ir.Value | Sequence[ir.Value] | None"
Rule: TypeAlias = Callable[[Builder, ir.Node], Outputs]

RULES: dict[str, dict[int, Rule]] = {}
"""Lowering rules by operator, then by the opset below which they apply."""

RAISING_RULES: dict[str, dict[int, Rule]] = {}
"""The same for the way up, by the opset from which on they apply; few operators ever changed their meaning."""


def lowering(*op_types: str, below: int) -> Callable[[Rule], Rule]:
    """Registers how nodes that opset `below` and later understand are written at opset ``below - 1``.

    Args:
        op_types: Operators of the default ONNX domain.
        below: First opset that has the meaning which the rule takes away.

    Returns:
        A decorator that returns its function unchanged. The function takes the Builder of opset ``below - 1`` and the
        node. It returns the new Value of each output, or None when the node stays (attributes dropped in place, if
        any); it calls ``op.refuse(reason)`` where the lower opset cannot say the same.

    Raises:
        ValueError: The operator has a rule for this opset already.
    """
    return _register_in(RULES, op_types, below)


def raising(*op_types: str, at: int) -> Callable[[Rule], Rule]:
    """Registers how nodes as opset ``at - 1`` means them are written at opset `at`; otherwise like `lowering`."""
    return _register_in(RAISING_RULES, op_types, at)


def _register_in(table: dict[str, dict[int, Rule]], op_types: Sequence[str], opset: int) -> Callable[[Rule], Rule]:
    def decorate(rule: Rule) -> Rule:
        for op_type in op_types:
            if opset in table.setdefault(op_type, {}):
                raise ValueError(f"{op_type} has a rule for opset {opset} already: {table[op_type][opset].__name__}.")
            table[op_type][opset] = rule
        return rule

    return decorate


def first_input(node: ir.Node) -> ir.Value:
    """The first input of an operator that has one in any case."""
    value = node.inputs[0]
    assert value is not None
    return value


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """An input, or None where it is omitted."""
    return node.inputs[index] if index < len(node.inputs) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Value of an attribute, or the default where it is omitted."""
    return node.attributes[name].value if name in node.attributes else default
