"""The ``else`` of a loop, which runs unless a break left the loop: it becomes an ``if`` behind it.

for x in xs:                    completed_1 = True
    if f(x):                    for x in xs:
        break            ->         if f(x):
else:                                   completed_1 = False
    y = 0                               break
                                if completed_1:
                                    y = 0
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks
from torch_onnx_compat.control_flow.lower.expressions import set_location


def unfold_else(stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements, changed in place, in which no loop has an else."""
    out: list[ast.stmt] = []
    for stmt in stmts:
        if not isinstance(stmt, SCOPES):
            for block in blocks(stmt):
                block[:] = unfold_else(block)
        if not isinstance(stmt, (ast.For, ast.While)) or not stmt.orelse:
            out.append(stmt)
            continue
        name = f"completed_{stmt.lineno}"
        stmt.body = _note_breaks(stmt.body, name)
        behind = set_location(ast.If(ast.Name(name, ast.Load()), stmt.orelse, []), stmt.orelse[0])
        behind.is_decision = True  # type: ignore[attr-defined]
        stmt.orelse = []
        out += [_note(name, True, stmt), stmt, behind]
    return out


def _note_breaks(stmts: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for stmt in stmts:
        if isinstance(stmt, ast.Break):
            out.append(_note(name, False, stmt))
        elif not isinstance(stmt, (*SCOPES, ast.For, ast.While)):
            for block in blocks(stmt):
                block[:] = _note_breaks(block, name)
        out.append(stmt)
    return out


def _note(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    return set_location(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), at)
