"""The table of lowering rules, and the decorator that fills it.

A rule takes one operator one step down. ``@lowering("Gelu", below=20)`` says: a Gelu as opset 20 and later mean it can
be written in the operators of opset 19, and this function does it. The rule never asks how far down the model goes:
what it writes is taken further by the rules of lower opsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder

Outputs: TypeAlias = "ir.Value | Sequence[ir.Value] | None"
Rule: TypeAlias = Callable[[Builder, ir.Node], Outputs]

RULES: dict[str, dict[int, Rule]] = {}
"""Rules by operator, then by the opset below which they apply."""


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

    def decorate(rule: Rule) -> Rule:
        for op_type in op_types:
            if below in RULES.setdefault(op_type, {}):
                raise ValueError(f"{op_type} below {below} has a rule already: {RULES[op_type][below].__name__}.")
            RULES[op_type][below] = rule
        return rule

    return decorate


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """An input, or None where it is omitted."""
    return node.inputs[index] if index < len(node.inputs) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Value of an attribute, or the default where it is omitted."""
    return node.attributes[name].value if name in node.attributes else default
