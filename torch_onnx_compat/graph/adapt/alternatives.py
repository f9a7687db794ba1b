"""The table of alternatives: other forms of operators, for targets that do not run the usual form right.

An alternative is a rule that computes the same numbers with other operators, or with other attributes, at the same
opset. Several rules may serve one operator. They are tried in the order in which they were registered: the order of the
imports in adapt.py and, within a module, the order in which the rules stand.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_onnx_compat.graph.opset.lowering import Rule

ALTERNATIVES: dict[str, list[Rule]] = {}
"""Rules by operator, in the order in which they are tried."""


def alternative(*op_types: str) -> Callable[[Rule], Rule]:
    """Registers an alternative for operators; the function is written like a lowering rule.

    The function returns None where it has no alternative for the node; it must not change the node.
    """

    def decorate(rule: Rule) -> Rule:
        for op_type in op_types:
            ALTERNATIVES.setdefault(op_type, []).append(rule)
        return rule

    return decorate
