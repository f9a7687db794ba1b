"""Exits in nested decisions, and in with and try blocks: they become flags, and exits behind the outermost statement.

with torch.no_grad():             left_1 = False
    if a:                         with torch.no_grad():
        return x          ->          if a:
    x = f(x)                              returned_1 = x
                                          left_1 = True
                                      if not left_1:
                                          x = f(x)
                                  if left_1:
                                      return returned_1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from torch_onnx_compat.control_flow.find.source import Unrewritable
from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks, copy_tree, exits, terminates
from torch_onnx_compat.control_flow.lower.expressions import RUNTIME, runtime_call, set_location, thunk

EXITS = (ast.Return, ast.Break, ast.Continue)


def note_exits(stmt: ast.stmt, own_name: Callable[[str, ast.stmt], str]) -> list[ast.stmt]:
    """The statements that take a statement's place.

    Args:
        stmt: An if, with or try.
        own_name: Makes a variable of the function, of a word and a statement.

    Raises:
        Unrewritable: It has an exit that cannot become a flag.
    """
    stmt = copy_tree(stmt)  # what names a statement uses is known of the old one
    kinds = [kind for kind in EXITS if exits([stmt], (kind,))]
    value = own_name("returned", stmt) if ast.Return in kinds else ""
    notes = _ExitNotes({kind: own_name("left", stmt) for kind in kinds}, value)
    out = [_bind(flag, ast.Constant(False), stmt) for flag in notes.flags.values()]
    if value:
        undefined = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "UNDEFINED", ast.Load())
        out.append(_bind(value, undefined, stmt))
    always_returns = kinds == [ast.Return] and terminates([stmt])
    notes.note_inside(stmt)
    out.append(stmt)
    if always_returns:
        return [*out, set_location(ast.Return(ast.Name(value, ast.Load())), stmt)]
    for kind, flag in notes.flags.items():
        leaving = ast.Return(ast.Name(value, ast.Load())) if kind is ast.Return else kind()
        out.append(_decision(ast.Name(flag, ast.Load()), [set_location(leaving, stmt)], stmt))
    return out


def jump_behind_finally(block: Sequence[ast.stmt], own_name: Callable[[str, ast.stmt], str]) -> list[ast.stmt]:
    """A loop's body with each break and continue behind the try that it leaves, whose finally may change names.

    Args:
        block: The statements.
        own_name: As of `note_exits`.
    """
    out: list[ast.stmt] = []
    for stmt in block:
        if isinstance(stmt, (*SCOPES, ast.For, ast.While)) or not exits([stmt], (ast.Break, ast.Continue)):
            out.append(stmt)
            continue
        made = copy_tree(stmt)
        for inner in blocks(made):
            inner[:] = jump_behind_finally(inner, own_name)
        out += note_exits(made, own_name) if getattr(made, "finalbody", None) else [made]
    return out


class _ExitNotes:
    """Puts flags in place of exits.

    Args:
        flags: By kind of exit, the name that says that it was taken.
        value: The name of what is returned.
    """

    def __init__(self, flags: dict[type[ast.stmt], str], value: str) -> None:
        self.flags, self.value = flags, value

    def note_inside(self, stmt: ast.stmt) -> None:
        """Changes the blocks of a statement."""
        if isinstance(stmt, ast.If):
            stmt.body, stmt.orelse = self._note_in_block(stmt.body), self._note_in_block(stmt.orelse)
            stmt.masked = True  # type: ignore[attr-defined]
        elif isinstance(stmt, ast.With):
            stmt.body = self._note_in_block(stmt.body)
        elif isinstance(stmt, ast.Try) and not exits(stmt.finalbody, EXITS):
            leaves = exits(stmt.body, EXITS)
            stmt.body, rest = self._note_in_block(stmt.body), self._note_in_block(stmt.orelse)
            stmt.orelse = [self._unless_left(rest)] if rest and leaves else rest
            for handler in stmt.handlers:
                handler.body = self._note_in_block(handler.body)
        elif isinstance(stmt, (ast.For, ast.While)):
            stmt.body = self._break_in_loop(stmt.body)
        else:
            raise Unrewritable(f"line {stmt.lineno} is left in a way that is not covered")

    def _note_in_block(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for index, one in enumerate(block):
            if isinstance(one, EXITS):
                return [*out, *self._note(one)]
            out.append(one)
            if exits([one], EXITS):
                self.note_inside(one)
                rest = self._note_in_block(block[index + 1 :])
                return [*out, self._unless_left(rest)] if rest else out
        return out

    def _break_in_loop(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The body of a loop inside the statement, of which a return becomes a break."""
        out: list[ast.stmt] = []
        for one in block:
            if isinstance(one, ast.Return):
                return [*out, *self._note(one), set_location(ast.Break(), one)]
            out.append(one)
            if not exits([one], (ast.Return,)):
                continue
            if isinstance(one, (ast.For, ast.While)):
                one.body = self._break_in_loop(one.body)
                left = ast.Name(self.flags[ast.Return], ast.Load())
                out.append(_decision(left, [set_location(ast.Break(), one)], one))
            else:
                for inner in blocks(one):
                    inner[:] = self._break_in_loop(inner)
        return out

    def _note(self, one: ast.stmt) -> list[ast.stmt]:
        value = [_bind(self.value, one.value or ast.Constant(None), one)] if isinstance(one, ast.Return) else []
        return [*value, _bind(self.flags[type(one)], ast.Constant(True), one)]

    def _unless_left(self, block: list[ast.stmt]) -> ast.If:
        at = block[0]
        first, *others = (set_location(ast.Name(flag, ast.Load()), at) for flag in self.flags.values())
        left = runtime_call("or_", first, *map(thunk, others), at=at) if others else first
        return _decision(runtime_call("not_", left, at=at), block, at)


def _bind(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    return set_location(ast.Assign([ast.Name(name, ast.Store())], value), at)


def _decision(test: ast.expr, block: list[ast.stmt], at: ast.stmt) -> ast.If:
    made = set_location(ast.If(test, block, []), at)
    made.masked = True  # type: ignore[attr-defined]
    return made
