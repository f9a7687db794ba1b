"""Statements: an ``if`` that may depend on a tensor becomes two local functions and one call that joins their results.

    if x.sum() > 0:                      def then_2(): y = x * 2; return (y,)
        y = x * 2            ->          def else_2(): y = x; return (y,)
    else:                                (y,) = _rt.branch(_rt.compare(x.sum(), ">", 0), then_2, else_2, locals())
        y = x

If a branch returns, the rest of the function moves into the branches that do not, so that every path ends in a
return. So it does where a name is a tensor after one branch and None after the other. Exits of loops are in
loop_lowering.py.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from torch_onnx_compat.control_flow.find.source import FunctionNode, Unrewritable
from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks, copy_tree, exits, is_compound, walk_all
from torch_onnx_compat.control_flow.find.syntax import terminates as ends
from torch_onnx_compat.control_flow.lower.effects import GENERATED
from torch_onnx_compat.control_flow.lower.exits import EXITS, note_exits
from torch_onnx_compat.control_flow.lower.expressions import (
    RUNTIME,
    Expressions,
    local_function,
    runtime_call,
    set_location,
    thunk,
)
from torch_onnx_compat.control_flow.lower.facts import (
    Scope,
    containers_changed_by,
    live_before,
    loads,
    names_bound_by,
    overwritten_by,
    scope_of,
    side_effects,
)
from torch_onnx_compat.control_flow.lower.loop_else import unfold_else
from torch_onnx_compat.control_flow.lower.loop_lowering import LoopLowering, is_lowered, leaves_by_decision
from torch_onnx_compat.control_flow.lower.loop_tests import unfold_tests
from torch_onnx_compat.control_flow.lower.match_form import unfold_matches
from torch_onnx_compat.control_flow.lower.unswitching import unswitch


def lower(
    node: FunctionNode,
    lines: Collection[int],
    loops: Collection[int] = (),
    splits: Collection[int] = (),
    libraries: Collection[str] = (),
) -> FunctionNode:
    """Rewrites a definition in place, so that the run-time module takes the decisions on these lines.

    Args:
        node: The definition.
        lines: Where decisions were seen.
        loops: Lines of loops that cannot be unrolled.
        splits: Lines of decisions into whose branches the rest of the function moves.
        libraries: Names of modules whose functions write to no container, as torch.add.

    Raises:
        Unrewritable: A statement in it has no equivalent.
    """
    first = node.args.args[0].arg if node.args.args else ""
    head = 1 if ast.get_docstring(node, clean=False) is not None else 0
    unfold_matches(node)
    for one in walk_all(node) if splits or any(map(_is_split, walk_all(node))) else ():
        if isinstance(one, ast.FunctionDef):
            scope = scope_of(one)
            one.body = mark_splits(unswitch(one.body, splits, scope.own - scope.shared), splits)
    for one in walk_all(node):
        if isinstance(one, ast.FunctionDef):
            one.body = unfold_else(one.body)
    unfold_tests(node)
    scopes = {one: scope_of(one) for one in walk_all(node) if isinstance(one, ast.FunctionDef)}
    expressions = Expressions(lines, first, loops)
    body = [expressions.visit(stmt) for stmt in node.body[head:]]
    lowered = Lowering(scopes, {}, libraries).lower_body(node, body)
    start = set_location(
        ast.ImportFrom("torch_onnx_compat.control_flow.run", [ast.alias("runtime", RUNTIME)], 0), body[0]
    )
    node.body = [*node.body[:head], start, *lowered]
    return node


class Lowering(LoopLowering):
    """Lowers the statements of one function.

    A name that a nested function reads stays one variable: the functions that are made here declare it nonlocal. Any
    other name that they bind is a parameter and a result.

    Args:
        scopes: The names of the function, and of those inside it.
        counts: How often each name was generated.
        libraries: Names of modules whose functions write to no container.
    """

    def __init__(
        self, scopes: Mapping[FunctionNode, Scope], counts: dict[str, int], libraries: Collection[str] = ()
    ) -> None:
        super().__init__(counts)
        self._scopes, self._libraries = scopes, libraries

    def lower_body(self, node: FunctionNode, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Lowers the statements of a function, which are its whole body."""
        self.scope = self._scopes[node]
        given = {arg.arg for arg in walk_all(node.args) if isinstance(arg, ast.arg)}
        lowered = self.lower_block(body, set(self.scope.outer), [])
        unbound = [name for name in names_bound_by(body) if name in self.scope.shared and name not in given]
        if not unbound or lowered == list(body):
            return lowered
        undefined = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "UNDEFINED", ast.Load())
        start = ast.Assign([ast.Name(name, ast.Store()) for name in unbound], undefined)
        return [set_location(start, body[0]), *lowered]

    def live_before(self, stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
        """The names that are live before the statements; what a nested function reads always is.

        A break or continue among them passes over the rest, so what is live after them is live there.
        """
        passed_over = after if exits(stmts, (ast.Break, ast.Continue)) else set()
        return live_before(stmts, after) | passed_over | self.scope.shared | self.scope.outer

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
            live = self.live_before([*rest, *tail], after)
            if isinstance(stmt, ast.If) and (leaves_by_decision([stmt], EXITS) or getattr(stmt, "split", False)):
                return [*out, *self._split(stmt, rest, after, tail)]
            if isinstance(stmt, ast.If) and getattr(stmt, "masked", False):
                out += self.join_branches(stmt, live)
            elif isinstance(stmt, (ast.With, ast.Try)) and leaves_by_decision([stmt], EXITS):
                return out + self.lower_block([*note_exits(stmt, self.own_name), *rest], after, tail)
            elif isinstance(stmt, (ast.For, ast.While)) and is_lowered(stmt):
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
            stmt.body = Lowering(self._scopes, self._names, self._libraries).lower_body(stmt, stmt.body)
            return stmt
        if isinstance(stmt, SCOPES):
            return stmt
        inside = live
        if isinstance(stmt, (ast.For, ast.While)):
            inside = self.live_after_round(stmt, live)
        elif isinstance(stmt, ast.Try):
            inside = live | loads([*stmt.handlers, *stmt.orelse, *stmt.finalbody])  # an error may lead there at once
        with self.inside_loop() if isinstance(stmt, (ast.For, ast.While)) else nullcontext():
            for block in blocks(stmt):
                block[:] = self.lower_block(block, inside, [])
        return stmt

    def join_branches(self, stmt: ast.If, live: set[str]) -> list[ast.stmt]:
        """Lowers an if without exits: the values of the names that its branches bind are joined."""
        changed = self.own_containers([*stmt.body, *stmt.orelse])
        own = dict.fromkeys([*names_bound_by([*stmt.body, *stmt.orelse]), *(n for n in changed if n in live)])
        names = [name for name in own if name in live]
        result = set_location(ast.Return(_tuple(names, ast.Load())), stmt)
        definitions = self._branches(stmt, stmt.body, stmt.orelse, set(), [result])
        call = self._decide(stmt, definitions, [*stmt.body, *stmt.orelse])
        last = ast.Assign([_tuple(names, ast.Store())], call) if names else ast.Expr(call)
        return [*definitions, set_location(last, stmt)]

    def _split(self, stmt: ast.If, rest: list[ast.stmt], after: set[str], tail: list[ast.stmt]) -> list[ast.stmt]:
        """Lowers an if with a branch that returns: the rest of the function moves into the branches that do not."""
        lost = [name for name in names_bound_by([stmt, *rest]) if name in self.scope.outer]
        if lost:
            raise Unrewritable(f"line {stmt.lineno} may return, and binds {lost[0]} of an outer scope there or later")
        ending = tail or [set_location(ast.Return(ast.Constant(None)), stmt)]
        before: list[ast.stmt] = []
        inside = [*stmt.body, *stmt.orelse, *rest]
        falls = [block for block in (stmt.body, stmt.orelse) if not ends(block)]
        if len(falls) == 2 and rest:
            name = self.fresh_name("rest", stmt)
            # What a branch binds or changes, and the rest reads: the rest is called from inside the branch.
            written = [*names_bound_by([*stmt.body, *stmt.orelse]), *self.own_containers([*stmt.body, *stmt.orelse])]
            made = self.make_function(name, rest, after, ending, rest[0], written=written)
            before.append(made)
            arguments: list[ast.expr] = [ast.Name(name, ast.Load()), _locals(), _reading(made)]
            rest = [set_location(ast.Return(runtime_call("call_in_scope", *arguments, at=stmt)), stmt)]
        body = [*stmt.body, *rest] if not ends(stmt.body) else stmt.body
        orelse = [*stmt.orelse, *rest] if not ends(stmt.orelse) else stmt.orelse
        definitions = self._branches(stmt, body, orelse, after, ending)
        call = self._decide(stmt, definitions, inside)
        if not self._loops and all(map(_returns_nothing, tail)):
            call.keywords.append(set_location(ast.keyword("returns", ast.Constant(True)), stmt))
        return [*before, *definitions, set_location(ast.Return(call), stmt)]

    def _branches(
        self, stmt: ast.If, body: list[ast.stmt], orelse: list[ast.stmt], after: set[str], tail: list[ast.stmt]
    ) -> list[ast.stmt]:
        return [
            self.make_function(self.fresh_name("then", stmt), body, after, tail, stmt),
            self.make_function(self.fresh_name("otherwise", stmt), orelse, after, tail, stmt),
        ]

    def _decide(self, stmt: ast.If, definitions: list[ast.stmt], inside: list[ast.stmt]) -> ast.Call:
        names = [ast.Name(d.name, ast.Load()) for d in definitions if isinstance(d, ast.FunctionDef)]
        owners = self._attribute_owners(inside)
        reason = self.obstacle(inside, apart_from=owners)
        extra: list[ast.expr] = [ast.Constant(reason), _thunks(owners)] if owners else []
        extra = extra or ([ast.Constant(reason)] if reason else [])
        call = runtime_call("branch", stmt.test, *names, _locals(), *extra, at=stmt)
        if self._loops:  # elsewhere the rest of the function moves into the branches, which then have plain lists
            call.keywords.append(set_location(ast.keyword("grows", ast.Constant(True)), stmt))
        return call

    def _attribute_owners(self, stmts: Sequence[ast.AST]) -> dict[str, str]:
        """The writes of attributes among some statements, with ``a.b`` of ``a.b.c``, which is known before them."""
        bound = names_bound_by(stmts)
        found = side_effects(stmts)
        return {what: owner for what, owner in found.items() if owner and owner.split(".")[0] not in bound}

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
        """A local function around statements.

        Its parameters are the names that are live before them and that they bind, or that are `written` where the
        function is called from. It reads all others, as Python does, from the functions around it.
        """
        containers = self.own_containers(body)
        overwritten = [name for name in overwritten_by(body) if name in self.scope.own]
        bound = [*names_bound_by(body), *containers, *overwritten]
        own = dict.fromkeys([*given, *written, *bound, *sorted(loads(tail))])
        wanted = live_before([*body, *tail], after)
        parameters = [n for n in own if n in wanted and self._is_passed(n)]
        start: list[ast.stmt] = []
        shared = [n for n in dict.fromkeys(bound) if n in self.scope.shared]
        if shared:
            start.append(set_location(ast.Nonlocal(shared), at))
        for changed in containers:
            if (changed in parameters or changed in shared) and not given:
                copy = runtime_call("copy_container", ast.Name(changed, ast.Load()), at=at)
                start.append(set_location(ast.Assign([ast.Name(changed, ast.Store())], copy), at))
        statements = [*start, *self.lower_block(list(body), after, tail)] or [set_location(ast.Pass(), at)]
        return local_function(name, parameters, statements, at)

    def _is_passed(self, name: str) -> bool:
        """Whether a name is passed from function to function."""
        return name != RUNTIME and not name.startswith(GENERATED) and name not in self.scope.shared

    def own_containers(self, stmts: Sequence[ast.AST]) -> list[str]:
        """Names of the function's own containers that the statements write to."""
        return [name for name in containers_changed_by(stmts) if name in self.scope.own or name in self.scope.outer]

    def obstacle(self, stmts: Sequence[ast.AST], apart_from: Collection[str] = ()) -> str:
        """The first side effect of some statements but those that are named, as text; empty if they have none."""
        found = next((what for what in side_effects(stmts) if what not in apart_from), "")
        known = {*self.scope.own, *self._libraries}
        foreign = [name for name in containers_changed_by(stmts) if name not in known]
        if foreign and not found:
            found = f"{foreign[0]} of an outer scope is changed"
        called = [name for name in self.scope.writers if name in loads(stmts)]
        return found or (f"{called[0]} binds {self.scope.writers[called[0]]} of an outer scope" if called else "")


def mark_splits(stmts: Sequence[ast.stmt], lines: Collection[int]) -> list[ast.stmt]:
    """Marks the ifs on some lines, and those around them; ``y = a if c else b`` there becomes an if.

    Within a loop, or a with or try block, the rest of the block moves into the if at once.

    Args:
        stmts: A function's body, or a block; its ifs are changed in place.
        lines: Of the decisions.
    """
    out: list[ast.stmt] = []
    for stmt in stmts:
        if _is_choice(stmt) and _is_on(stmt, lines):
            stmt = _unfold_choice(stmt)
            stmt.split = True  # type: ignore[attr-defined]
        elif isinstance(stmt, ast.If):
            stmt.body, stmt.orelse = mark_splits(stmt.body, lines), mark_splits(stmt.orelse, lines)
            is_marked = getattr(stmt, "split", False) or stmt.lineno in lines
            stmt.split = is_marked or any(map(_is_split, (*stmt.body, *stmt.orelse)))  # type: ignore[attr-defined]
        elif not isinstance(stmt, SCOPES):
            for block in blocks(stmt):
                block[:] = _move_rest(mark_splits(block, lines))
        out.append(stmt)
    return out


def _is_choice(stmt: ast.stmt) -> bool:
    return isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.Return)) and isinstance(stmt.value, ast.IfExp)


def _unfold_choice(stmt: Any) -> ast.stmt:
    """The if for ``y = a if c else b``, or a return of it."""

    def with_value(value: ast.expr) -> ast.stmt:
        if isinstance(stmt, ast.Return):
            return set_location(ast.Return(value), stmt)
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        return set_location(ast.Assign([copy_tree(target) for target in targets], value), stmt)

    choice = stmt.value
    return set_location(ast.If(choice.test, [with_value(choice.body)], [with_value(choice.orelse)]), stmt)


def _is_split(stmt: ast.AST) -> bool:
    return getattr(stmt, "split", False)


def _move_rest(stmts: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A block in which what follows an if that is marked is in both of its branches; it is marked no longer."""
    out: list[ast.stmt] = []
    for stmt in reversed(stmts):
        if isinstance(stmt, ast.If) and _is_split(stmt):
            stmt.split = False  # type: ignore[attr-defined]
            for block in (stmt.body, stmt.orelse):
                block[:] = _move_rest(block if ends(block) else [*block, *map(copy_tree, out)])
            out = []
        out.insert(0, stmt)
    return out


def _is_on(stmt: ast.stmt, lines: Collection[int]) -> bool:
    return any(line in lines for line in range(stmt.lineno, (stmt.end_lineno or stmt.lineno) + 1))


def _returns_nothing(stmt: ast.stmt) -> bool:
    """Whether it is the end of a function without a return; the tail of a branch or a round returns a tuple."""
    return isinstance(stmt, ast.Return) and isinstance(stmt.value, ast.Constant) and stmt.value.value is None


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, context) for name in names], context)


def _thunks(expressions: Mapping[str, str]) -> ast.Dict:
    """``{key: lambda: expression, …}``."""
    values: list[ast.expr] = [thunk(ast.parse(text, mode="eval").body) for text in expressions.values()]
    return ast.Dict([ast.Constant(key) for key in expressions], values)


def _reading(made: ast.FunctionDef) -> ast.expr:
    """``lambda: (a, b)`` of a function's parameters: where it stands, these names are read, so locals() has them."""
    names: list[ast.expr] = [ast.Name(arg.arg, ast.Load()) for arg in made.args.args]
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Tuple(names, ast.Load()))


def _locals() -> ast.expr:
    return ast.Call(ast.Name("locals", ast.Load()), [], [])
