"""Loops that a decision may leave: the unrolled loop goes on as if it were not left, and each exit is recorded.

    while err > tol and n < 9:          loop_3 = _rt.Loop()
        n = n + 1; err = f(err)    ->   for _ in _rt.steps():
                                            def leave_3(err, n): return (False, None, err, n)
                                            if loop_3.leave(_rt.not_(...), leave_3, locals()): break
                                            n = n + 1; err = f(err)
                                        (_, _, err, n) = loop_3.join_leaves(locals(), ("err", "n"))

Python counters stay Python numbers while the loop is unrolled, so that a loop with a bound ends. After the loop the
first exit whose condition holds gives the values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch_onnx_compat.control_flow.find.source import Unrewritable
from torch_onnx_compat.control_flow.find.syntax import blocks, copy_tree, exits, terminates
from torch_onnx_compat.control_flow.lower.exits import EXITS, note_exits
from torch_onnx_compat.control_flow.lower.expressions import RUNTIME, runtime_call, set_location, thunk
from torch_onnx_compat.control_flow.lower.facts import names_bound_by, overwritten_by, read_by_rounds
from torch_onnx_compat.control_flow.lower.loop_form import LoopForm


def leaves_by_decision(stmts: Sequence[ast.stmt], kinds: tuple[type[ast.stmt], ...]) -> bool:
    """Whether a decision among these statements leads to one of these kinds of exit."""
    for stmt in stmts:
        if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
            continue
        inner = kinds
        if isinstance(stmt, (ast.For, ast.While)):
            inner = tuple(k for k in kinds if k is ast.Return)
            if is_lowered(stmt) and inner and exits([stmt], inner):
                return True
            if getattr(stmt, "in_file", False):
                continue  # its body becomes a function
        if isinstance(stmt, ast.If) and getattr(stmt, "masked", False) and exits([*stmt.body, *stmt.orelse], kinds):
            return True
        if inner and any(leaves_by_decision(block, inner) for block in blocks(stmt)):
            return True
    return False


def is_lowered(stmt: ast.For | ast.While) -> bool:
    """Whether a loop is rewritten itself: it runs in the file, or a decision leaves it or ends one of its rounds."""
    return getattr(stmt, "in_file", False) or needs_lowering(stmt)


def needs_lowering(stmt: ast.For | ast.While) -> bool:
    """Whether a decision leaves the loop or ends one of its rounds."""
    return getattr(stmt, "masked", False) or leaves_by_decision(stmt.body, EXITS)


def _is_of_python(stmt: ast.If) -> bool:
    """Whether an ``if`` stays one, and what decides in it leaves the loop, but does not only end the round."""
    return not getattr(stmt, "masked", False) and not leaves_by_decision([*stmt.body, *stmt.orelse], (ast.Continue,))


class LoopLowering(LoopForm):
    """Lowers loops."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._names = counts
        self._loops = 0

    @contextmanager
    def inside_loop(self) -> Iterator[None]:
        """While active, the statements that are lowered are those of a loop."""
        self._loops += 1
        try:
            yield
        finally:
            self._loops -= 1

    def fresh_name(self, kind: str, at: ast.stmt) -> str:
        """A name that is not in use yet; it ends in the line that it is generated for."""
        name = f"{kind}_{at.lineno}"
        self._names[name] = count = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def own_name(self, kind: str, at: ast.stmt) -> str:
        """A fresh name of a variable of the function, which loops and branches hand on."""
        name = self.fresh_name(kind, at)
        self.scope.own.add(name)
        return name

    def lower_block(self, stmts: Sequence[ast.stmt], after: set[str], tail: list[ast.stmt]) -> list[ast.stmt]:
        """Lowers a block."""
        raise NotImplementedError

    def lower_inside(self, stmt: ast.stmt, live: set[str]) -> ast.stmt:
        """Lowers the statements inside a statement that stays."""
        raise NotImplementedError

    def join_branches(self, stmt: ast.If, live: set[str]) -> list[ast.stmt]:
        """Lowers an if without exits."""
        raise NotImplementedError

    def lower_loop(self, stmt: ast.For | ast.While, live: set[str]) -> tuple[list[ast.stmt], ast.If | None]:
        """Lowers a loop, one in the file too.

        Returns:
            The statements, and the ``if`` that returns the loop's value if the loop returned, which may be a decision
            itself; None if the loop does not return.

        Raises:
            Unrewritable: The loop has an exit that has no equivalent.
        """
        if getattr(stmt, "in_file", False):
            return self.loop_in_file(stmt, live)
        name = self.fresh_name("loop", stmt)
        written = [*names_bound_by([stmt]), *self.own_containers([stmt]), *overwritten_by([stmt])]
        names = [n for n in dict.fromkeys(written) if n in live and n in self.scope.own | self.scope.outer]
        leave = _ExitMaker(self, stmt, name, names)
        inside = self.live_after_round(stmt, live)
        body: list[ast.stmt] = []
        if isinstance(stmt, ast.While):
            body += leave.make_exit(runtime_call("not_", stmt.test, at=stmt.test), [set_location(ast.Break(), stmt)])
            target: ast.expr = ast.Name(f"step_{stmt.lineno}", ast.Store())
            iterated: ast.expr = runtime_call("steps", at=stmt)
        else:
            target, iterated = stmt.target, stmt.iter
        returns = exits(stmt.body, (ast.Return,))
        with self.inside_loop():
            body += self._lower_round(stmt.body, inside, leave)
        lowered = set_location(ast.For(target, iterated, body, [], None), stmt)
        start = set_location(ast.Assign([ast.Name(name, ast.Store())], runtime_call("Loop", at=stmt)), stmt)
        flag, value = (f"{what}_{name}" for what in ("returned", "value"))
        targets = [ast.Name(n, ast.Store()) for n in (flag, value, *names)]
        wanted = ast.Tuple([ast.Constant(n) for n in names], ast.Load())
        joined = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "join_leaves", ast.Load()), [_locals(), wanted], [])
        end = set_location(ast.Assign([ast.Tuple(list(targets), ast.Store())], joined), stmt)
        if not returns:
            return [start, lowered, end], None
        leaving = set_location(ast.If(ast.Name(flag, ast.Load()), [ast.Return(ast.Name(value, ast.Load()))], []), stmt)
        leaving.masked = True  # type: ignore[attr-defined]
        return [start, lowered, end], leaving

    def live_after_round(self, stmt: ast.For | ast.While, live: set[str]) -> set[str]:
        """The names that are live at the end of a loop's round, given those that are live after the loop."""
        return live | read_by_rounds(stmt)

    def live_before(self, stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
        """The names that are live before some statements."""
        raise NotImplementedError

    def _lower_round(self, stmts: Sequence[ast.stmt], live: set[str], leave: _ExitMaker) -> list[ast.stmt]:
        """Lowers the body of a loop; its exits are recorded."""
        out: list[ast.stmt] = []
        for index, stmt in enumerate(stmts):
            rest = list(stmts[index + 1 :])
            leaving_with_rest = self._lower_exit(stmt, rest, live, leave)
            if leaving_with_rest is not None:
                return out + leaving_with_rest
            # A recorded exit in the rest leaves with the values that are live after the round.
            here = self.live_before(rest, live) | live
            if isinstance(stmt, ast.If) and exits([stmt], EXITS):
                stmt.body = self._lower_round(stmt.body, here, leave)
                stmt.orelse = self._lower_round(stmt.orelse, here, leave)
                out.append(stmt)
            elif isinstance(stmt, ast.If) and getattr(stmt, "masked", False):
                out += self.join_branches(stmt, here)
            elif isinstance(stmt, (ast.For, ast.While)) and is_lowered(stmt):
                lowered, leaving = self.lower_loop(stmt, here)
                out += lowered
                if leaving is not None:
                    return out + self._lower_round([leaving, *rest], live, leave)
            else:
                out.append(self._lower_staying(stmt, here))
        return out

    def _lower_exit(
        self, stmt: ast.stmt, rest: list[ast.stmt], live: set[str], leave: _ExitMaker
    ) -> list[ast.stmt] | None:
        """Lowers an exit, or a statement that a decision leaves, with the rest of the round; None for any other."""
        if isinstance(stmt, ast.If) and exits([stmt], EXITS) and not _is_of_python(stmt):
            return self._lower_leaving_if(stmt, rest, live, leave)
        if isinstance(stmt, (ast.Break, ast.Return)):
            return leave.make_exit(set_location(ast.Constant(True), stmt), [stmt])
        if isinstance(stmt, (ast.With, ast.Try)) and leaves_by_decision([stmt], EXITS):
            return self._lower_round([*note_exits(stmt, self.own_name), *rest], live, leave)
        return None

    def _lower_staying(self, stmt: ast.stmt, live: set[str]) -> ast.stmt:
        """Lowers a statement of a body that does not leave the loop."""
        if isinstance(stmt, (ast.For, ast.While, ast.With, ast.Try)) and exits([stmt], EXITS):
            raise Unrewritable(f"line {stmt.lineno} leaves the loop around it in a way that is not covered")
        return self.lower_inside(stmt, live)

    def _lower_leaving_if(
        self, stmt: ast.If, rest: list[ast.stmt], live: set[str], leave: _ExitMaker
    ) -> list[ast.stmt]:
        body, orelse = stmt.body, stmt.orelse
        for block, other in ((body, orelse), (orelse, body)):
            if block and isinstance(block[-1], ast.Continue):
                following = _without_continues(rest)
                if following is None or exits(following, EXITS):
                    return self._lower_round(self._guard_rest(stmt, block, rest), live, leave)
                block[-1:] = [] if len(block) > 1 else [set_location(ast.Pass(), block[-1])]
                other += following
                return self._lower_round([stmt], live, leave)
        if terminates(body) and _leaves_at_once(body):
            return leave.make_exit(stmt.test, body) + self._lower_round([*orelse, *rest], live, leave)
        if terminates(orelse) and _leaves_at_once(orelse):
            test = runtime_call("not_", stmt.test, at=stmt.test)
            return leave.make_exit(test, orelse) + self._lower_round([*body, *rest], live, leave)
        if len(body) == 1 and isinstance(body[0], ast.If) and not orelse and not body[0].orelse:
            inner = body[0]
            inner.test = runtime_call("and_", stmt.test, thunk(inner.test), at=stmt.test)
            inner.masked = True  # type: ignore[attr-defined]
            return self._lower_round([inner, *rest], live, leave)
        return self._lower_round([*note_exits(stmt, self.own_name), *rest], live, leave)

    def _guard_rest(self, stmt: ast.If, block: list[ast.stmt], rest: list[ast.stmt]) -> list[ast.stmt]:
        """``if c: continue`` before statements that leave the loop: puts each of these under ``if not c``."""
        flag = self.fresh_name("skip", stmt)
        test = stmt.test if block is stmt.body else runtime_call("not_", stmt.test, at=stmt.test)
        start = set_location(ast.Assign([ast.Name(flag, ast.Store())], test), stmt)

        def under(condition: ast.expr, stmts: list[ast.stmt]) -> ast.If:
            made = set_location(ast.If(condition, stmts, []), stmts[0])
            made.masked = True  # type: ignore[attr-defined]
            return made

        def unless(stmts: list[ast.stmt]) -> ast.If:
            return under(runtime_call("not_", ast.Name(flag, ast.Load()), at=stmts[0]), stmts)

        other = stmt.orelse if block is stmt.body else stmt.body
        out: list[ast.stmt] = [start]
        if block[:-1]:
            out.append(under(set_location(ast.Name(flag, ast.Load()), stmt), block[:-1]))
        for one in [*other, *rest]:
            out.append(unless([one]))
        return out


def _leaves_at_once(stmts: Sequence[ast.stmt]) -> bool:
    """Whether a block's exits are those of the loop around it, and none is inside of a loop, or a with or try block."""
    for stmt in stmts:
        if isinstance(stmt, ast.Continue):
            return False
        if isinstance(stmt, ast.If):
            if not (_leaves_at_once(stmt.body) and _leaves_at_once(stmt.orelse)):
                return False
        elif not isinstance(stmt, (ast.Break, ast.Return)) and exits([stmt], EXITS):
            return False
    return True


def _without_continues(stmts: Sequence[ast.stmt]) -> list[ast.stmt] | None:
    """The end of a round without ``continue``: what follows an ``if c: continue`` moves under its ``else``.

    None where a statement would have to stand in both branches.
    """
    for index, stmt in enumerate(stmts):
        before, rest = list(stmts[:index]), list(stmts[index + 1 :])
        if isinstance(stmt, ast.Continue):
            return before
        if not isinstance(stmt, ast.If) or not exits([stmt], (ast.Continue,)):
            continue
        falls = [block for block in (stmt.body, stmt.orelse) if not terminates(block)]
        if rest and len(falls) == 2:
            return None
        blocks = [
            _without_continues(block if terminates(block) else [*block, *rest]) for block in (stmt.body, stmt.orelse)
        ]
        if blocks[0] is None or blocks[1] is None:
            return None
        made = copy_tree(stmt)
        made.body = blocks[0] or [set_location(ast.Pass(), stmt)]
        made.orelse = blocks[1]
        made.masked = getattr(stmt, "masked", False)  # type: ignore[attr-defined]
        return [*before, made]
    return list(stmts)


class _ExitMaker:
    """Makes the statements that record the exits of one loop."""

    def __init__(self, lowering: LoopLowering, loop: ast.stmt, name: str, names: list[str]) -> None:
        self._lowering, self._loop, self._name, self._names = lowering, loop, name, names

    def make_exit(self, test: ast.expr, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements that leave the loop through a block, which ends in break or return, if the test holds."""
        at = block[-1]
        stmts = [_LeavesToReturns(self._name, self._names).visit(copy_tree(stmt)) for stmt in block]
        name = self._lowering.fresh_name("leave", at)
        definition = self._lowering.make_function(name, stmts, set(), [], at)
        method = ast.Attribute(ast.Name(self._name, ast.Load()), "leave", ast.Load())
        call = ast.Call(method, [test, ast.Name(name, ast.Load()), _locals()], [])
        return [definition, set_location(ast.If(call, [ast.Break()], []), at)]


class _LeavesToReturns(ast.NodeTransformer):
    """Replaces break and return by a return of: whether the function returns, its value, the values of the names."""

    def __init__(self, loop: str, names: list[str]) -> None:
        self._loop, self._names = loop, names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._stay(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._stay(node)

    def _stay(self, node: ast.For | ast.While) -> ast.AST:
        if exits([node], (ast.Return,)):
            raise Unrewritable(f"line {node.lineno} returns from a loop inside a loop that a decision leaves")
        return node

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        raise Unrewritable(f"line {node.lineno} goes on with a loop where another path leaves it")

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._state(node, False, _undefined_node())

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return self._state(node, True, node.value or ast.Constant(None))

    def _state(self, at: ast.stmt, returns: bool, value: ast.expr) -> ast.AST:
        # Nothing reads the loop's names after the function has returned.
        names = [_undefined_node() if returns else self._kept(n) for n in self._names]
        return set_location(ast.Return(ast.Tuple([ast.Constant(returns), value, *names], ast.Load())), at)

    def _kept(self, name: str) -> ast.expr:
        """The value of a name, which the rounds that follow in the trace may change in place."""
        keep = ast.Attribute(ast.Name(self._loop, ast.Load()), "keep", ast.Load())
        return ast.Call(keep, [ast.Name(name, ast.Load())], [])


def _undefined_node() -> ast.expr:
    return ast.Attribute(ast.Name(RUNTIME, ast.Load()), "UNDEFINED", ast.Load())


def _locals() -> ast.expr:
    return ast.Call(ast.Name("locals", ast.Load()), [], [])
