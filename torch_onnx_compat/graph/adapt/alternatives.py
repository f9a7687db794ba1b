"""The table of alternatives: other forms of operators, for targets that do not run the usual one right.

A rule takes one operator and writes the same numbers with other operators, or with other attributes, at the same
opset. Several rules may serve one operator; they are tried in the order in which they were registered, which is the
order of the imports in adapt.py and, within a module, the order in which the rules stand.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_onnx_compat.graph.opset.lowering import Rule

ALTERNATIVES: dict[str, list[Rule]] = {}
"""Rules by operator, in the order in which they are tried."""


def alternative(*op_types: str) -> Callable[[Rule], Rule]:
    """Registers another form of operators; the function is written like a lowering rule.

    It returns None where it has none for the node, and must leave the node as it is.
    """

    def decorate(rule: Rule) -> Rule:
        for op_type in op_types:
            ALTERNATIVES.setdefault(op_type, []).append(rule)
        return rule

    return decorate
