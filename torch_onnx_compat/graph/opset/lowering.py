"""The tables of lowering and raising rules, and the decorators that fill them.

A rule lowers one operator by one opset. ``@lowering("Gelu", below=20)`` registers a function that writes a Gelu, as
opset 20 and later define it, in the operators of opset 19. The rule never asks how far down the model goes: the rules
of lower opsets rewrite its nodes further. The rules stand in the modules of this folder, by family; convert.py imports
them.
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
"""Raising rules by operator, then by the opset from which on they apply; few operators ever changed their meaning."""


def lowering(*op_types: str, below: int) -> Callable[[Rule], Rule]:
    """Registers how nodes of opset `below` and later are written at opset ``below - 1``.

    Args:
        op_types: Operators of the default ONNX domain.
        below: First opset that has the meaning which the rule rewrites.

    Returns:
        A decorator that returns its function unchanged. The function takes the Builder of opset ``below - 1`` and the
        node. It returns the new Value of each output, or None when the node stays, perhaps with fewer attributes. It
        calls ``op.refuse(reason)`` where the lower opset has no equivalent.

    Raises:
        ValueError: The operator has a rule for this opset already.
    """
    return _register_in(RULES, op_types, below)


def raising(*op_types: str, at: int) -> Callable[[Rule], Rule]:
    """Registers how nodes of opset ``at - 1`` are written at opset `at`; otherwise like `lowering`."""
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
    """The first input of an operator whose first input is required."""
    value = node.inputs[0]
    assert value is not None
    return value


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """An input, or None where it is omitted."""
    return node.inputs[index] if index < len(node.inputs) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Value of an attribute, or the default where it is omitted."""
    return node.attributes[name].value if name in node.attributes else default
