"""``match``, whose patterns compare inside of Python where nobody hears it: it becomes a chain of ``if``.

match n:                        subject_1 = n
    case 1 | 2:                 if subject_1 == 1 or subject_1 == 2:
        y = x            ->         y = x
    case k if k > 9:            elif subject_1 > 9:
        y = x * k                   k = subject_1
    case _:                         y = x * k
        y = -x                  else:
                                    y = -x

A pattern that has no such form (of a mapping, of a class with attributes, with a star) leaves its match as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch_onnx_compat.control_flow.find.source import FunctionNode
from torch_onnx_compat.control_flow.find.syntax import COMPREHENSIONS, SCOPES, blocks, copy_tree, walk_all
from torch_onnx_compat.control_flow.lower.expressions import runtime_call, set_location

_KINDS = frozenset({"int", "float", "bool", "str", "tuple", "list"})
"""Classes whose pattern may hold one other pattern, of the value itself."""

Captures = dict[str, ast.expr]
"""The names that a pattern binds, and what they are bound to."""


class _NoForm(Exception):
    """A pattern that is no condition."""


def unfold_matches(node: FunctionNode) -> None:
    """Changes the statements of a function, and of those inside, so that no match is left that has another form."""
    for one in walk_all(node):
        if isinstance(one, ast.FunctionDef):
            one.body = _unfold(one.body, node)


def _unfold(stmts: Sequence[ast.stmt], function: FunctionNode) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for stmt in stmts:
        if not isinstance(stmt, SCOPES):
            for block in blocks(stmt):
                block[:] = _unfold(block, function)
        if not isinstance(stmt, ast.Match):
            out.append(stmt)
            continue
        try:
            out += _chain(stmt, function)
        except _NoForm:
            out.append(stmt)
    return out


def _chain(match: ast.Match, function: FunctionNode) -> list[ast.stmt]:
    """The statements for a match.

    Raises:
        _NoForm: A pattern has none.
    """
    name = f"subject_{match.lineno}"
    found = []
    for case in match.cases:
        captures: Captures = {}
        conditions = list(_conditions(case.pattern, ast.Name(name, ast.Load()), captures))
        if case.guard is not None:
            _check_guard(case, captures, function)
            conditions.append(_Captured(captures).visit(copy_tree(case.guard)))
        binds = [ast.Assign([ast.Name(bound, ast.Store())], value) for bound, value in captures.items()]
        found.append((conditions, [*(set_location(bind, case.pattern) for bind in binds), *case.body], case))
    otherwise: list[ast.stmt] = []
    for conditions, body, case in reversed(found):
        if not conditions:
            otherwise = body
            continue
        otherwise = [set_location(ast.If(_all_of(conditions), body, otherwise), case.pattern)]
    subject = ast.Assign([ast.Name(name, ast.Store())], match.subject)
    return [set_location(subject, match.subject), *otherwise]


def _conditions(pattern: ast.pattern, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    """What has to hold for a pattern to match; notes the names that it binds.

    Args:
        pattern: The pattern; a part of another one has the conditions of its own.
        value: What is matched.
        captures: Takes the names.

    Raises:
        _NoForm: It is no condition.
    """
    form = _FORMS.get(type(pattern))
    if form is None:
        raise _NoForm
    yield from form(pattern, value, captures)


def _of_value(pattern: ast.MatchValue, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    yield ast.Compare(copy_tree(value), [ast.Eq()], [pattern.value])


def _of_singleton(pattern: ast.MatchSingleton, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    yield ast.Compare(copy_tree(value), [ast.Is()], [ast.Constant(pattern.value)])


def _of_name(pattern: ast.MatchAs, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    if pattern.pattern is not None:
        yield from _conditions(pattern.pattern, value, captures)
    if pattern.name is not None:
        captures[pattern.name] = copy_tree(value)


def _of_alternatives(pattern: ast.MatchOr, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    bound: Captures = {}
    each = [list(_conditions(inner, value, bound)) for inner in pattern.patterns]
    if bound or not all(each):
        raise _NoForm
    yield ast.BoolOp(ast.Or(), list(map(_all_of, each)))


def _of_sequence(pattern: ast.MatchSequence, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    if any(isinstance(inner, ast.MatchStar) for inner in pattern.patterns):
        raise _NoForm
    yield runtime_call("is_sequence", copy_tree(value), ast.Constant(len(pattern.patterns)), at=pattern)
    for index, inner in enumerate(pattern.patterns):
        item = ast.Subscript(copy_tree(value), ast.Constant(index), ast.Load())
        yield from _conditions(inner, item, captures)


def _of_class(pattern: ast.MatchClass, value: ast.expr, captures: Captures) -> Iterator[ast.expr]:
    if pattern.kwd_patterns or not _holds_itself(pattern):
        raise _NoForm
    yield ast.Call(ast.Name("isinstance", ast.Load()), [copy_tree(value), pattern.cls], [])
    for inner in pattern.patterns:
        yield from _conditions(inner, value, captures)


_FORMS: dict[type, Callable[[Any, ast.expr, Captures], Iterator[ast.expr]]] = {
    ast.MatchValue: _of_value,
    ast.MatchSingleton: _of_singleton,
    ast.MatchAs: _of_name,
    ast.MatchOr: _of_alternatives,
    ast.MatchSequence: _of_sequence,
    ast.MatchClass: _of_class,
}


def _all_of(conditions: list[ast.expr]) -> ast.expr:
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)


def _holds_itself(pattern: ast.MatchClass) -> bool:
    """Whether what a class's pattern holds, if anything, is matched with the value itself."""
    if not pattern.patterns:
        return True
    return len(pattern.patterns) == 1 and isinstance(pattern.cls, ast.Name) and pattern.cls.id in _KINDS


def _check_guard(case: ast.match_case, captures: Mapping[str, ast.expr], function: FunctionNode) -> None:
    """Raises where a guard cannot be a condition: Python binds the names before it, and they stay bound if it fails."""
    assert case.guard is not None
    inner = (*SCOPES, *COMPREHENSIONS, ast.NamedExpr)
    if captures and any(isinstance(one, inner) for one in walk_all(case.guard)):
        raise _NoForm
    if any(_is_read_outside(name, function) for name in captures):
        raise _NoForm


def _is_read_outside(name: str, function: FunctionNode) -> bool:
    """Whether a function has a name elsewhere than in cases that bind it themselves."""
    nodes = walk_all(function)
    binding = [one for one in nodes if isinstance(one, ast.match_case) and name in _bound_by(one.pattern)]
    inside = {id(node) for case in binding for node in walk_all(case)}
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in inside for node in nodes)


def _bound_by(pattern: ast.pattern) -> set[str]:
    return {one.name for one in walk_all(pattern) if isinstance(one, ast.MatchAs) and one.name is not None}


class _Captured(ast.NodeTransformer):
    """Puts what names are bound to in their places."""

    def __init__(self, captures: Captures) -> None:
        self._captures = captures

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that the pattern binds."""
        found = self._captures.get(node.id)
        return node if found is None else set_location(copy_tree(found), node)
