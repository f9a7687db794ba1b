"""Which names statements bind and which values they need: what a branch takes and what it hands on.

Lowering asks this of the same statements at every level of nesting. Each is gone through once; what a rewriting puts
elsewhere later does not change the names in it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch_onnx_compat.control_flow.find.syntax import SCOPES, children, walk_all
from torch_onnx_compat.control_flow.lower.effects import side_effect

_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "popitem", "update", "setdefault", "add", "remove", "discard", "clear"}
    | {"sort", "reverse"}
)


@dataclass(frozen=True)
class NameUsage:
    """The names of one statement, or of another part of a tree; the keys of dicts, which keep their order."""

    reads: dict[str, None] = field(default_factory=dict)
    """Nested scopes included."""
    binds: dict[str, None] = field(default_factory=dict)
    """In its own scope."""
    changes: dict[str, None] = field(default_factory=dict)
    """Of lists, dicts and the like that it writes into."""
    side_effects: dict[str, None] = field(default_factory=dict)
    """What it does that must not happen when it is not reached, each with its line."""


@functools.lru_cache(maxsize=4096)
def name_usage(root: ast.AST) -> NameUsage:
    """The facts of a tree, those of the statements in it among them."""
    found = NameUsage()
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            (found.binds if isinstance(node.ctx, ast.Store) else found.reads)[node.id] = None
        elif isinstance(node, ast.stmt) and node is not root:
            inner = name_usage(node)
            found.reads.update(inner.reads)
            found.binds.update(inner.binds)
            found.changes.update(inner.changes)
            found.side_effects.update(inner.side_effects)
        elif isinstance(node, SCOPES):
            found.reads.update(_reads_within(node))
            if not isinstance(node, ast.Lambda):
                found.binds[node.name] = None
        elif isinstance(node, ast.comprehension):
            found.reads.update(_reads_within(node.target))  # what it binds is its own
            todo += [*reversed(node.ifs), node.iter]
        else:
            if isinstance(node, _NOTED):
                _note(node, found)
            todo += reversed(children(node))
    return found


_NOTED = (
    *(ast.Attribute, ast.Call, ast.Subscript, ast.AugAssign, ast.alias, ast.ExceptHandler),
    *(ast.Delete, ast.Global, ast.Nonlocal),
)
"""The nodes that do more than hold others."""


def _note(node: ast.AST, found: NameUsage) -> None:
    """Adds what a node does beyond the names right inside it."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.reads[node.target.id] = None
    elif isinstance(node, ast.alias):
        found.binds[(node.asname or node.name).split(".")[0]] = None
    elif isinstance(node, ast.ExceptHandler) and node.name:
        found.binds[node.name] = None
    changed = _write_target(node)
    while isinstance(changed, ast.Subscript):
        changed = changed.value
    if isinstance(changed, ast.Name):
        found.changes[changed.id] = None
    what = side_effect(node)
    if what:
        found.side_effects[f"line {getattr(node, 'lineno', 0)} {what}"] = None


def _write_target(node: ast.AST) -> ast.AST | None:
    """What a node writes into, if it does."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
        return node.func.value
    return node.target if isinstance(node, ast.AugAssign) else None


def _reads_within(node: ast.AST) -> dict[str, None]:
    """Names that are read anywhere in a scope of its own, or in those inside it."""
    found: dict[str, None] = {}
    for inner in walk_all(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            found[inner.id] = None
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            found[inner.target.id] = None
    return found


def names_bound_by(stmts: Sequence[ast.AST]) -> list[str]:
    """Names that the statements bind in their own scope, in order."""
    return list(dict.fromkeys(name for stmt in stmts for name in name_usage(stmt).binds))


def containers_changed_by(stmts: Sequence[ast.AST]) -> list[str]:
    """Names of lists, dicts and the like that the statements write into."""
    return list(dict.fromkeys(name for stmt in stmts for name in name_usage(stmt).changes))


def obstacle(stmts: Sequence[ast.AST]) -> str:
    """What in a branch must not happen when the branch is not taken; empty if there is nothing."""
    return next((what for stmt in stmts for what in name_usage(stmt).side_effects), "")


def loads(node: ast.AST | Sequence[ast.AST]) -> set[str]:
    """Names that are read, nested scopes included."""
    found: set[str] = set()
    for one in [node] if isinstance(node, ast.AST) else node:
        found.update(name_usage(one).reads)
    return found


def live_before(stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Names that are read, by the statements or `after` them, before they are surely bound."""
    live = set(after)
    for stmt in reversed(stmts):
        live = _live_before_statement(stmt, live)
    return live


def _live_before_statement(stmt: ast.stmt, after: set[str]) -> set[str]:
    if isinstance(stmt, (ast.Return, ast.Raise)):
        return loads(stmt)
    if isinstance(stmt, ast.If):
        return loads(stmt.test) | live_before(stmt.body, after) | live_before(stmt.orelse, after)
    if isinstance(stmt, (ast.Assign, ast.AnnAssign)):
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        return (after - set(names_bound_by(targets))) | loads(stmt)
    if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
        return (after - {stmt.name}) | loads(stmt)
    if isinstance(stmt, ast.With):
        return loads([item.context_expr for item in stmt.items]) | live_before(stmt.body, after)
    return after | loads(stmt)  # loops and try: any part may be skipped or run again
