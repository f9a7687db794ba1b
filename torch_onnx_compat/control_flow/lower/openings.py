"""Calls that return one kind of value or another, as None or a tensor: the code after them moves into two branches.

    m = mask_of(x)                result_1_12 = mask_of(x)
    return attend(x, m)    ->     if _rt.which(result_1_12):
                                      result_1_12 = _rt.first(result_1_12)
                                  else:
                                      result_1_12 = _rt.second(result_1_12)
                                  m = result_1_12
                                  return attend(x, m)

The rest of the function moves into the branches of this ``if``, as statements.py does where a function itself decides.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from torch_onnx_compat.control_flow.find.calls import CallSite
from torch_onnx_compat.control_flow.find.source import FunctionNode
from torch_onnx_compat.control_flow.find.syntax import SCOPES, blocks, children, walk_all
from torch_onnx_compat.control_flow.lower.expressions import runtime_call, set_location


def open_calls(node: FunctionNode, sites: Collection[CallSite]) -> set[CallSite]:
    """Changes the statements of a function, and of those inside, that make these calls.

    Args:
        node: The definition.
        sites: The calls; those of other functions do not matter.

    Returns:
        The calls that were changed.
    """
    found: set[CallSite] = set()
    for one in walk_all(node) if sites else ():
        if isinstance(one, ast.FunctionDef):
            one.body = list(_open_in_block(one.body, sites, found))
    return found


def _open_in_block(stmts: Sequence[ast.stmt], sites: Collection[CallSite], found: set[CallSite]) -> Iterator[ast.stmt]:
    for stmt in stmts:
        for block in () if isinstance(stmt, SCOPES) else blocks(stmt):
            block[:] = _open_in_block(block, sites, found)
        for site in sites:
            parts = _parts_before(stmt, site)
            if parts is not None:
                found.add(site)
                yield from _bind_and_choose(stmt, *parts)
        yield stmt


def _bind_and_choose(stmt: ast.stmt, *parts: ast.expr) -> Iterator[ast.stmt]:
    """The statements that go before one, in which names take the places of parts, the last of which is the call."""
    name = ""

    def bind(value: ast.expr) -> ast.stmt:
        return set_location(ast.Assign([ast.Name(name, ast.Store())], value), stmt)

    def side(which: str) -> list[ast.stmt]:
        return [bind(runtime_call(which, ast.Name(name, ast.Load()), at=stmt))]

    for part in parts:
        name = f"result_{part.end_lineno}_{part.end_col_offset}"
        _replace(stmt, part, set_location(ast.Name(name, ast.Load()), part))
        yield bind(part)
    choice = ast.If(runtime_call("which", ast.Name(name, ast.Load()), at=stmt), side("first"), side("second"))
    choice.is_decision = choice.split = True  # type: ignore[attr-defined]
    yield set_location(choice, stmt)


def _replace(parent: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for one in walk_all(parent):
        for name, value in vars(one).items():
            if value is old:
                setattr(one, name, new)
            elif isinstance(value, list):
                value[:] = [new if item is old else item for item in value]


def _parts_before(stmt: ast.stmt, site: CallSite) -> list[ast.expr] | None:
    """The parts of a statement that are evaluated up to a call, which is the last; None if it has no such call."""
    value = _head(stmt)
    parts: list[ast.expr] = []
    while value is not None:
        if _is_at(value, site):
            return [*parts, value]
        value = _part_with(value, site, parts)
    return None


def _head(stmt: ast.stmt) -> ast.expr | None:
    """What a statement evaluates first, and once."""
    if isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)):
        return stmt.value
    return stmt.test if isinstance(stmt, ast.If) else None


def _is_at(node: ast.AST, site: CallSite) -> bool:
    if not isinstance(node, (ast.Call, ast.Attribute)):
        return False
    if site.span is None:
        return isinstance(node, ast.Call) and node.lineno <= site.line <= (node.end_lineno or node.lineno)
    span = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
    # A call of a method begins, to Python, where the method's name stands.
    return span[2:] == site.span[2:] if isinstance(node, ast.Call) else span == site.span


def _part_with(node: ast.expr, site: CallSite, parts: list[ast.expr]) -> ast.expr | None:
    """The part of an expression that holds a call and is evaluated in any case; what is before it joins `parts`."""
    if isinstance(node, (ast.BoolOp, ast.IfExp)):
        first = node.values[0] if isinstance(node, ast.BoolOp) else node.test
        return first if _holds(first, site) else None
    for part in children(node) if isinstance(node, _IN_ORDER) else ():
        value = part.value if isinstance(part, (ast.keyword, ast.Starred)) else part
        if not isinstance(value, ast.expr) or _holds(value, site):
            return value if isinstance(value, ast.expr) else None
        if not _is_plain(value):
            parts.append(value)
    return None


def _holds(node: ast.AST, site: CallSite) -> bool:
    return any(_is_at(inner, site) for inner in walk_all(node))


_IN_ORDER = (
    *(ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Dict),
    ast.NamedExpr,
)
"""Expressions whose parts are all evaluated, in the order of their fields."""


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression is a name, a constant, or a path of attributes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, (ast.Name, ast.Constant))
