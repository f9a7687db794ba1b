"""Statements: an ``if`` that may depend on a tensor becomes two local functions and one call that joins their results.

    if x.sum() > 0:                      def then_2(): y = x * 2; return (y,)
        y = x * 2            ->          def else_2(): y = x; return (y,)
    else:                                (y,) = _rt.branch(_rt.compare(x.sum(), ">", 0), then_2, else_2, locals())
        y = x

If a branch returns, the rest of the function moves into the branches that do not, so that every path ends in a
return. Exits of loops are in loop_lowering.py.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from torch_onnx_compat.control_flow.find.source import FunctionNode, Unrewritable
from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks, is_compound
from torch_onnx_compat.control_flow.find.syntax import terminates as ends
from torch_onnx_compat.control_flow.lower.effects import GENERATED
from torch_onnx_compat.control_flow.lower.expressions import (
    RUNTIME,
    Expressions,
    local_function,
    runtime_call,
    set_location,
)
from torch_onnx_compat.control_flow.lower.facts import (
    containers_changed_by,
    live_before,
    loads,
    names_bound_by,
    obstacle,
)
from torch_onnx_compat.control_flow.lower.loop_lowering import LoopLowering, leaves_by_decision, needs_lowering

EXITS = (ast.Return, ast.Break, ast.Continue)


def lower(node: FunctionNode, lines: Collection[int], loops: Collection[int] = ()) -> FunctionNode:
    """Rewrites a definition in place, so that the run-time module takes the decisions on these lines.

    Args:
        node: The definition.
        lines: Where decisions were seen.
        loops: Lines of ``while`` loops that do not end when they are unrolled.

    Raises:
        Unrewritable: A statement in it has no equivalent.
    """
    first = node.args.args[0].arg if node.args.args else ""
    head = 1 if ast.get_docstring(node, clean=False) is not None else 0
    expressions = Expressions(lines, first, loops)
    body = [expressions.visit(stmt) for stmt in node.body[head:]]
    lowered = Lowering().lower_block(body, set(), [])
    start = set_location(
        ast.ImportFrom("torch_onnx_compat.control_flow.run", [ast.alias("runtime", RUNTIME)], 0), body[0]
    )
    node.body = [*node.body[:head], start, *lowered]
    return node


class Lowering(LoopLowering):
    """Lowers the statements of one function."""

    def lower_block(self, stmts: Sequence[ast.stmt], after: set[str], tail: list[ast.stmt]) -> list[ast.stmt]:
        """Lowers a block.

        Args:
            stmts: The statements.
            after: Names that are live after the block.
            tail: Statements to add at the block's end, where it is reached.
        """
        out: list[ast.stmt] = []
        for index, stmt in enumerate(stmts):
            if not is_compound(stmt):
                out.append(stmt)
                continue
            rest = list(stmts[index + 1 :])
            live = live_before([*rest, *tail], after)
            if isinstance(stmt, ast.If) and leaves_by_decision([stmt], EXITS):
                return [*out, *self._split(stmt, rest, after, tail)]
            if isinstance(stmt, ast.If) and getattr(stmt, "masked", False):
                out += self.join_branches(stmt, live)
            elif isinstance(stmt, (ast.For, ast.While)) and getattr(stmt, "in_file", False):
                out += self.loop_in_file(stmt, live)
            elif isinstance(stmt, (ast.For, ast.While)) and needs_lowering(stmt):
                lowered, leaving = self.lower_loop(stmt, live)
                out += lowered
                if leaving is not None:
                    return out + self.lower_block([leaving, *rest], after, tail)
            else:
                out.append(self.lower_inside(stmt, live))
        return out if ends(out) else [*out, *tail]

    def lower_inside(self, stmt: ast.stmt, live: set[str]) -> ast.stmt:
        """Lowers the statements inside a statement that stays."""
        if isinstance(stmt, ast.FunctionDef):
            stmt.body = self.lower_block(stmt.body, set(), [])
            return stmt
        if isinstance(stmt, SCOPES):
            return stmt
        if not isinstance(stmt, (ast.If, ast.For, ast.While)) and leaves_by_decision([stmt], EXITS):
            raise Unrewritable(f"the decision in line {stmt.lineno} leaves a with or try block")
        inside = live | loads(stmt) if isinstance(stmt, (ast.For, ast.While, ast.Try)) else live
        for block in blocks(stmt):
            block[:] = self.lower_block(block, inside, [])
        return stmt

    def join_branches(self, stmt: ast.If, live: set[str]) -> list[ast.stmt]:
        """Lowers an if without exits: the values of the names that its branches bind are joined."""
        changed = containers_changed_by([*stmt.body, *stmt.orelse])
        own = dict.fromkeys([*names_bound_by([*stmt.body, *stmt.orelse]), *(n for n in changed if n in live)])
        names = [name for name in own if name in live]
        result = set_location(ast.Return(_tuple(names, ast.Load())), stmt)
        definitions = self._branches(stmt, stmt.body, stmt.orelse, set(), [result])
        call = self._decide(stmt, definitions)
        last = ast.Assign([_tuple(names, ast.Store())], call) if names else ast.Expr(call)
        return [*definitions, set_location(last, stmt)]

    def _split(self, stmt: ast.If, rest: list[ast.stmt], after: set[str], tail: list[ast.stmt]) -> list[ast.stmt]:
        """Lowers an if with a branch that returns: the rest of the function moves into the branches that do not."""
        ending = tail or [set_location(ast.Return(ast.Constant(None)), stmt)]
        before: list[ast.stmt] = []
        falls = [block for block in (stmt.body, stmt.orelse) if not ends(block)]
        if len(falls) == 2 and rest:
            name = self.fresh_name("rest", stmt)
            before.append(self.make_function(name, rest, after, ending, rest[0]))
            arguments: list[ast.expr] = [ast.Name(name, ast.Load()), _locals()]
            rest = [set_location(ast.Return(runtime_call("call_in_scope", *arguments, at=stmt)), stmt)]
        body = [*stmt.body, *rest] if not ends(stmt.body) else stmt.body
        orelse = [*stmt.orelse, *rest] if not ends(stmt.orelse) else stmt.orelse
        definitions = self._branches(stmt, body, orelse, after, ending)
        return [*before, *definitions, set_location(ast.Return(self._decide(stmt, definitions)), stmt)]

    def _branches(
        self, stmt: ast.If, body: list[ast.stmt], orelse: list[ast.stmt], after: set[str], tail: list[ast.stmt]
    ) -> list[ast.stmt]:
        return [
            self.make_function(self.fresh_name("then", stmt), body, after, tail, stmt),
            self.make_function(self.fresh_name("otherwise", stmt), orelse, after, tail, stmt),
        ]

    def _decide(self, stmt: ast.If, definitions: list[ast.stmt]) -> ast.Call:
        names = [ast.Name(d.name, ast.Load()) for d in definitions if isinstance(d, ast.FunctionDef)]
        reason = obstacle([*stmt.body, *stmt.orelse])
        extra = [ast.Constant(reason)] if reason else []
        return runtime_call("branch", stmt.test, *names, _locals(), *extra, at=stmt)

    def make_function(
        self,
        name: str,
        body: Sequence[ast.stmt],
        after: set[str],
        tail: list[ast.stmt],
        at: ast.stmt,
        given: Sequence[str] = (),
    ) -> ast.FunctionDef:
        """A local function around statements; its parameters are the names that are live before them."""
        containers = containers_changed_by(body)
        own = dict.fromkeys([*given, *names_bound_by(body), *containers, *sorted(loads(tail))])
        wanted = live_before([*body, *tail], after)
        parameters = [n for n in own if n in wanted and n != RUNTIME and not n.startswith(GENERATED)]
        copies: list[ast.stmt] = []
        for changed in containers:
            if changed in parameters and not given:
                copy = runtime_call("copy_container", ast.Name(changed, ast.Load()), at=at)
                copies.append(set_location(ast.Assign([ast.Name(changed, ast.Store())], copy), at))
        statements = [*copies, *self.lower_block(list(body), after, tail)] or [set_location(ast.Pass(), at)]
        return local_function(name, parameters, statements, at)


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, context) for name in names], context)


def _locals() -> ast.expr:
    return ast.Call(ast.Name("locals", ast.Load()), [], [])
