"""Names that the test of a ``while`` binds: the test becomes an ``if`` in the body, since a test of its own binds none.

while (n := f(x)) > 0:          while True:
    x = g(x, n)          ->         if not (n := f(x)) > 0:
                                        break
                                    x = g(x, n)
"""

from __future__ import annotations

import ast

from torch_onnx_compat.control_flow.find.source import FunctionNode
from torch_onnx_compat.control_flow.find.syntax import walk_all, walk_scope
from torch_onnx_compat.control_flow.lower.expressions import set_location


def unfold_tests(node: FunctionNode) -> None:
    """Changes a definition in place, so that no test of a loop binds a name."""
    for stmt in walk_all(node):
        if isinstance(stmt, ast.While) and any(isinstance(one, ast.NamedExpr) for one in walk_scope([stmt.test])):
            is_and = isinstance(stmt.test, ast.BoolOp) and isinstance(stmt.test.op, ast.And)
            parts = stmt.test.values if is_and else [stmt.test]  # type: ignore[attr-defined]
            leaves = [ast.If(ast.UnaryOp(ast.Not(), part), [ast.Break()], []) for part in parts]
            stmt.body[:0] = [set_location(leave, stmt.test) for leave in leaves]
            stmt.test = set_location(ast.Constant(True), stmt)
