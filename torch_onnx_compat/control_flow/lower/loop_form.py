"""Loops whose number of rounds may vary: the body becomes a function, and the run-time module calls it.

    for row in x:                 def body_2(item_of_loop, total):
        total = total + row           row = item_of_loop
                            ->        total = total + row
                                      return (True, total)
                                  (total,) = _rt.for_(x, body_2, locals(), ("total",), (), False)

What a round returns says first whether to go on: break is a return of False, continue one of True.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from torch_onnx_compat.control_flow.find.source import Unrewritable
from torch_onnx_compat.control_flow.find.syntax import SCOPES, copied, exits, walk
from torch_onnx_compat.control_flow.lower.expressions import placed, runtime_call
from torch_onnx_compat.control_flow.lower.facts import bound, changed_containers, loads, needed, obstacle

ITEM = "item_of_loop"
"""The parameter of a body that takes the item."""


class LoopForm:
    """The part of the lowering that deals with loops which run in the file."""

    def fresh(self, kind: str, at: ast.stmt) -> str:
        """A name for something generated."""
        raise NotImplementedError

    def function(
        self,
        name: str,
        body: Sequence[ast.stmt],
        after: set[str],
        tail: list[ast.stmt],
        at: ast.stmt,
        given: Sequence[str] = (),
    ) -> ast.FunctionDef:
        """A local function around statements."""
        raise NotImplementedError

    def looped(self, stmt: ast.For | ast.While, live: set[str]) -> list[ast.stmt]:
        """A loop whose number of rounds may vary.

        Args:
            stmt: The loop.
            live: Names that are read after it.

        Raises:
            Unrewritable: It has an else clause, or returns.
        """
        if stmt.orelse:
            raise Unrewritable(f"the loop in line {stmt.lineno} has an else clause")
        if exits(stmt.body, (ast.Return,)):
            raise Unrewritable(f"the loop in line {stmt.lineno} returns from the function; leave it by break")
        body = list(stmt.body)
        if isinstance(stmt, ast.For):
            body.insert(0, placed(ast.Assign([stmt.target], ast.Name(ITEM, ast.Load())), stmt))
        tested = loads(stmt.test) if isinstance(stmt, ast.While) else set()
        again = needed(body, set()) | tested
        names = [n for n in dict.fromkeys([*bound(body), *changed_containers(body)]) if n in live or n in again]
        leaves = exits(body, (ast.Break,))
        rounds: list[Any] = [_Rounds(names).visit(copied(one)) for one in body]
        end = _state(stmt, True, names)
        given = [ITEM] if isinstance(stmt, ast.For) else names
        function = self.function(self.fresh("body", stmt), rounds, set(), [end], stmt, given or [ITEM])
        arguments: list[ast.expr] = [
            ast.Name(function.name, ast.Load()),
            ast.Call(ast.Name("locals", ast.Load()), [], []),
            _texts(names),
            _texts([name for name in names if name in _appended(body)]),
        ]
        reason = obstacle(stmt.body)
        extra: list[ast.expr] = [ast.Constant(reason)] if reason else []
        if isinstance(stmt, ast.For):
            call = runtime_call("for_", stmt.iter, *arguments, ast.Constant(leaves), *extra, at=stmt)
        else:
            parameters = ast.arguments([], [ast.arg(n) for n in names if n in tested], None, [], [], None, [])
            test = placed(ast.Lambda(parameters, stmt.test), stmt)
            call = runtime_call("while_", test, *arguments, *extra, at=stmt)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        last = ast.Assign([ast.Tuple(targets, ast.Store())], call) if names else ast.Expr(call)
        return [function, placed(last, stmt)]


def _appended(stmts: Sequence[ast.stmt]) -> set[str]:
    """Names of what the statements append to."""
    calls = (n.func for n in walk(list(stmts)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return {f.value.id for f in calls if f.attr in ("append", "extend") and isinstance(f.value, ast.Name)}


def _texts(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _state(at: ast.stmt, goes_on: bool, names: Sequence[str]) -> ast.stmt:
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    return placed(ast.Return(ast.Tuple([ast.Constant(goes_on), *values], ast.Load())), at)


class _Rounds(ast.NodeTransformer):
    """Break and continue as the end of a round."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        """Leaves functions, and loops inside, as they are."""
        if isinstance(node, (*SCOPES, ast.For, ast.While)):
            return node
        if isinstance(node, (ast.Break, ast.Continue)):
            return _state(node, isinstance(node, ast.Continue), self._names)
        result: ast.AST = super().visit(node)
        return result
