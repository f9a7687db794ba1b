"""Loops in which a name decides that no round binds: they move into the branches of a decision before them.

    for block in blocks:                  if flag:
        if flag:                              flag_12 = True
            size = block.shape[2:]   ->       for block in blocks:
        x = block(x, size)                        if flag_12:
    return x                                          ...
                                              return x
                                          else:
                                              flag_12 = False
                                              ...

What a round leaves behind for the next is of one kind then, as None or a size. The rest of the function moves into the
branches of the new ``if`` as statements.py does it. Compilers call this loop unswitching.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks, walk_scope
from torch_onnx_compat.control_flow.lower.expressions import set_location
from torch_onnx_compat.control_flow.lower.facts import names_bound_by


def unswitch(stmts: Sequence[ast.stmt], lines: Collection[int], names: Collection[str]) -> list[ast.stmt]:
    """Puts a decision before each loop for each name that decides in it and that it does not bind.

    Args:
        stmts: A function's body, or a block; the blocks inside are changed in place.
        lines: Of the decisions whose branches give a name values of several kinds.
        names: Those that only the function binds.
    """
    out: list[ast.stmt] = []
    for stmt in stmts:
        for name in _deciding_names(stmt, lines, names) if isinstance(stmt, (ast.For, ast.While)) else ():
            out.append(_decision(name, stmt))
        for block in () if isinstance(stmt, SCOPES) else blocks(stmt):
            block[:] = unswitch(block, lines, names)
        out.append(stmt)
    return out


def _deciding_names(loop: ast.stmt, lines: Collection[int], names: Collection[str]) -> list[str]:
    """The names that are tested, or a part of a test, on some lines of a loop that binds none of them."""
    bound = set(names_bound_by([loop]))
    found = {part.id: None for test in _tests(loop) if test.lineno in lines for part in _parts(test)}
    return [name for name in found if name in names and name not in bound]


def _tests(loop: ast.stmt) -> Iterator[ast.expr]:
    return (one.test for one in walk_scope(loop) if isinstance(one, (ast.If, ast.IfExp)))


def _parts(test: ast.expr) -> Iterator[ast.Name]:
    """The names that stand alone in a test, or under its ``and``, ``or`` and ``not``: only their truth counts."""
    if isinstance(test, ast.Name):
        yield test
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _parts(value)


def _decision(name: str, loop: ast.stmt) -> ast.stmt:
    """The decision before a loop on a name, of which the truth gets a name of its own in the loop's tests."""
    truth = f"{name}_{loop.lineno}"
    for test in _tests(loop):
        for part in _parts(test):
            if part.id == name:
                part.id = truth

    def side(holds: bool) -> list[ast.stmt]:
        return [ast.Assign([ast.Name(truth, ast.Store())], ast.Constant(holds))]

    choice = ast.If(ast.Name(name, ast.Load()), side(True), side(False))
    choice.is_decision = choice.split = True  # type: ignore[attr-defined]
    return set_location(choice, loop)
