"""What a branch, or a round of a loop, does beyond binding names: what a mask or an ONNX graph cannot express."""

from __future__ import annotations

import ast

GENERATED = ("then_", "otherwise_", "rest_", "leave_", "loop_", "body_", "test_")
"""How the names of what the lowering makes begin."""


def side_effect(node: ast.AST) -> str:
    """What a node does beyond binding names of the function; empty if nothing."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return f"writes the attribute {ast.unparse(node)}"
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return "binds names of an outer scope"
    if isinstance(node, ast.Delete):  # of a name of the function none is left by now
        return f"deletes {', '.join(map(ast.unparse, node.targets))}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CONTAINER_WRITES:
        changed = node.func.value
        return "" if isinstance(changed, (ast.Name, ast.Subscript)) else f"changes {ast.unparse(changed)}"
    return ""


_CONTAINER_WRITES = frozenset({"append", "extend", "insert", "pop", "popitem", "update", "setdefault", "remove"})
