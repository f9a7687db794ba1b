"""Loops whose number of rounds may vary: the body becomes a function that the run-time module calls.

    for row in x:                 def body_2(item_of_loop, total):
        total = total + row           row = item_of_loop
                            ->        total = total + row
                                      return (True, total)
                                  (total,) = _rt.for_(x, body_2, locals(), ("total",), (), False)

The body returns first whether the loop goes on: break becomes a return of False, continue a return of True.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch_onnx_compat.control_flow.find.source import Unrewritable
from torch_onnx_compat.control_flow.find.syntax import SCOPES, copy_tree, exits, walk_scope
from torch_onnx_compat.control_flow.lower.exits import jump_behind_finally
from torch_onnx_compat.control_flow.lower.expressions import runtime_call, set_location
from torch_onnx_compat.control_flow.lower.facts import (
    Scope,
    live_before,
    loads,
    names_bound_by,
)

ITEM = "item_of_loop"
"""Name of the body's parameter that takes the item."""


class LoopForm:
    """Lowers loops that run in the file, as an ONNX Loop or Scan.

    Attributes:
        scope: The names of the function that is lowered.
    """

    scope: Scope

    def own_containers(self, stmts: Sequence[ast.AST]) -> list[str]:
        """Names of the function's own containers that the statements write to."""
        raise NotImplementedError

    def obstacle(self, stmts: Sequence[ast.AST]) -> str:
        """The first side effect of some statements, as text; empty if they have none."""
        raise NotImplementedError

    def fresh_name(self, kind: str, at: ast.stmt) -> str:
        """A name that is not in use yet."""
        raise NotImplementedError

    def own_name(self, kind: str, at: ast.stmt) -> str:
        """A fresh name of a variable of the function."""
        raise NotImplementedError

    def inside_loop(self) -> AbstractContextManager[None]:
        """While active, the statements that are lowered are those of a loop."""
        raise NotImplementedError

    def make_function(
        self,
        name: str,
        body: Sequence[ast.stmt],
        after: set[str],
        tail: list[ast.stmt],
        at: ast.stmt,
        given: Sequence[str] = (),
        written: Sequence[str] = (),
    ) -> ast.FunctionDef:
        """A local function around statements."""
        raise NotImplementedError

    def loop_in_file(self, stmt: ast.For | ast.While, live: set[str]) -> tuple[list[ast.stmt], ast.If | None]:
        """Lowers a loop whose number of rounds may vary.

        Args:
            stmt: The loop.
            live: Names that are live after it.

        Returns:
            The statements, and the ``if`` that returns the loop's value if the loop returned; None if it does not
            return.

        Raises:
            Unrewritable: It returns from a loop inside it.
        """
        body, start, leaving = list(stmt.body), list[ast.stmt](), None
        if exits(stmt.body, (ast.Return,)):
            returns = _ReturnsToBreaks(self.fresh_name("loop", stmt))
            body, start, leaving = returns.visit_body(body), [returns.begin(stmt)], returns.leave(stmt)
            live = live | {returns.flag, returns.value}
        body = jump_behind_finally(body, self.own_name)
        if isinstance(stmt, ast.For):
            body.insert(0, set_location(ast.Assign([stmt.target], ast.Name(ITEM, ast.Load())), stmt))
        tested = loads(stmt.test) if isinstance(stmt, ast.While) else set()
        again = live_before(body, set()) | tested
        names = [
            n for n in dict.fromkeys([*names_bound_by(body), *self.own_containers(body)]) if n in live or n in again
        ]
        shared = [name for name in names if name in self.scope.shared]
        if shared:
            raise Unrewritable(f"the loop in line {stmt.lineno} binds {shared[0]}, which a nested function reads")
        leaves = exits(body, (ast.Break,))
        rounds: list[Any] = [_RoundEnds(names).visit(copy_tree(one)) for one in body]
        end = _round_result(stmt, True, names)
        given = [ITEM] if isinstance(stmt, ast.For) else names
        with self.inside_loop():
            function = self.make_function(self.fresh_name("body", stmt), rounds, set(), [end], stmt, given or [ITEM])
        arguments: list[ast.expr] = [
            ast.Name(function.name, ast.Load()),
            ast.Call(ast.Name("locals", ast.Load()), [], []),
            _string_tuple(names),
            _string_tuple([name for name in names if name in _lists_appended_to(body)]),
        ]
        reason = self.obstacle(stmt.body)
        extra: list[ast.expr] = [ast.Constant(reason)] if reason else []
        if isinstance(stmt, ast.For):
            call = runtime_call("for_", stmt.iter, *arguments, ast.Constant(leaves), *extra, at=stmt)
            if getattr(stmt, "is_whole", False):
                call.keywords.append(set_location(ast.keyword("is_whole", ast.Constant(True)), stmt))
        else:
            parameters = ast.arguments([], [ast.arg(n) for n in names if n in tested], None, [], [], None, [])
            test = set_location(ast.Lambda(parameters, stmt.test), stmt)
            call = runtime_call("while_", test, *arguments, *extra, at=stmt)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        last = ast.Assign([ast.Tuple(targets, ast.Store())], call) if names else ast.Expr(call)
        return [*start, function, set_location(last, stmt)], leaving


class _ReturnsToBreaks(ast.NodeTransformer):
    """Replaces ``return value`` in a loop's body by a note of the value, and a break."""

    def __init__(self, loop: str) -> None:
        self.flag, self.value = f"returned_{loop}", f"value_{loop}"

    def visit_body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The body without returns."""
        made: list[ast.stmt] = []
        for stmt in body:
            new = self.visit(copy_tree(stmt))
            made += new if isinstance(new, list) else [new]
        return made

    def begin(self, loop: ast.stmt) -> ast.stmt:
        """What stands before the loop."""
        return set_location(ast.Assign([ast.Name(self.flag, ast.Store())], ast.Constant(False)), loop)

    def leave(self, loop: ast.stmt) -> ast.If:
        """What stands after it."""
        test, value = ast.Name(self.flag, ast.Load()), ast.Name(self.value, ast.Load())
        made = set_location(ast.If(test, [ast.Return(value)], []), loop)
        made.masked = True  # type: ignore[attr-defined]
        return made

    def visit(self, node: ast.AST) -> Any:
        """Visits a node; nested functions have returns of their own."""
        if isinstance(node, SCOPES):
            return node
        if isinstance(node, (ast.For, ast.While)) and exits([node], (ast.Return,)):
            raise Unrewritable(f"line {node.lineno} returns from a loop inside a loop whose length varies")
        return super().visit(node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        """Notes the value."""
        flag = ast.Assign([ast.Name(self.flag, ast.Store())], ast.Constant(True))
        value = ast.Assign([ast.Name(self.value, ast.Store())], node.value or ast.Constant(None))
        return [set_location(one, node) for one in (flag, value, ast.Break())]


def _lists_appended_to(stmts: Sequence[ast.stmt]) -> set[str]:
    """Names of lists that the statements append to; of ``name += …`` too, where it may be a list."""
    calls = [n for n in walk_scope(list(stmts)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    named = [call.func.value for call in calls if call.func.attr in _APPENDING]  # type: ignore[attr-defined]
    named += [call.args[1] for call in calls if call.func.attr == "augment"]  # type: ignore[attr-defined]
    named += [node.targets[0] for node in walk_scope(list(stmts)) if isinstance(node, ast.Assign) and _lengthens(node)]
    return {name.id for name in named if isinstance(name, ast.Name)}


def _lengthens(node: ast.Assign) -> bool:
    """Whether it is ``name = name + [item]`` or ``name = [*name, item]``, or the same the other way round."""
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Name):
        return False
    parts: list[ast.expr] = []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = [value.left, value.right]
        parts = parts if any(isinstance(part, ast.List) for part in parts) else []
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "listed":
        parts = [part.elts[1] for part in value.args if isinstance(part, ast.Tuple)]
    return sum(isinstance(part, ast.Name) and part.id == target.id for part in parts) == 1


_APPENDING = frozenset({"append", "extend", "insert"})


def _string_tuple(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _round_result(at: ast.stmt, goes_on: bool, names: Sequence[str]) -> ast.stmt:
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    return set_location(ast.Return(ast.Tuple([ast.Constant(goes_on), *values], ast.Load())), at)


class _RoundEnds(ast.NodeTransformer):
    """Replaces break and continue by returns from the body."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        """Visits a node; nested functions and loops have a break and continue of their own."""
        if isinstance(node, (*SCOPES, ast.For, ast.While)):
            return node
        if isinstance(node, (ast.Break, ast.Continue)):
            return _round_result(node, isinstance(node, ast.Continue), self._names)
        result: ast.AST = super().visit(node)
        return result
