"""Side effects of a branch or of a loop's body, which neither a mask nor an ONNX graph can express."""

from __future__ import annotations

import ast

GENERATED = ("then_", "otherwise_", "rest_", "leave_", "loop_", "body_", "test_")
"""Prefixes of the names that the lowering generates."""

OWNER_OF = "owner_of"
"""The run-time function of what ``x[i][j] = y`` writes to, whose first argument is x."""


def side_effect(node: ast.AST) -> str:
    """The side effect of a node, as text; empty if it has none."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return f"writes the attribute {ast.unparse(node)}"
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return "binds names of an outer scope"
    if isinstance(node, ast.Delete):  # the deletions of local names were rewritten before
        return f"deletes {', '.join(map(ast.unparse, node.targets))}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CONTAINER_WRITES:
        changed = node.func.value
        return "" if isinstance(changed, (ast.Name, ast.Subscript)) else f"changes {ast.unparse(changed)}"
    return ""


_CONTAINER_WRITES = frozenset({"append", "extend", "insert", "pop", "popitem", "update", "setdefault", "remove"})


def owner_of_write(node: ast.AST) -> str:
    """``a.b`` of a node that binds ``a.b.c``; empty for any other side effect."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return ""
    owner: ast.AST = node.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return ast.unparse(node.value) if isinstance(owner, ast.Name) else ""
