"""Which names statements bind and which values they need: what a branch takes and what it hands on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

N = TypeVar("N", bound=ast.AST)

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "popitem", "update", "setdefault", "add", "remove", "discard", "clear"}
    | {"sort", "reverse"}
)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right inside a node, without those that say whether a name is read or bound: faster than ast's."""
    found: list[ast.AST] = []
    for value in node.__dict__.values():
        kind = type(value)
        if kind is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif kind not in _NO_NODES and isinstance(value, ast.AST):
            found.append(value)
    return found


_NO_NODES = frozenset({int, str, bool, float, type(None), ast.Load, ast.Store, ast.Del})


def everywhere(node: ast.AST) -> list[ast.AST]:
    """A node and all inside it, nested scopes included."""
    found = [node]
    for one in found:
        found += children(one)  # what a list gets while it is gone through is gone through too
    return found


def walk(nodes: ast.AST | Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Every node of some statements that belongs to their own scope."""
    todo: list[ast.AST] = [nodes] if isinstance(nodes, ast.AST) else list(reversed(nodes))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, SCOPES):
            todo += reversed(children(node))


def copied(node: N) -> N:
    """A copy of a tree: what copy.deepcopy makes, in a fifth of its time."""
    new = node.__class__.__new__(node.__class__)
    new.__dict__.update((name, _copied(value)) for name, value in node.__dict__.items())
    return new


def _copied(value: Any) -> Any:
    if isinstance(value, ast.AST):
        return value if isinstance(value, ast.expr_context) else copied(value)
    return [_copied(item) for item in value] if isinstance(value, list) else value


def exits(stmts: Sequence[ast.AST], kinds: tuple[type[ast.stmt], ...]) -> bool:
    """Whether statements hold a return, or a break or continue of a loop around them."""
    for stmt in stmts:
        if isinstance(stmt, kinds):
            return True
        if isinstance(stmt, SCOPES):
            continue
        inner = (ast.Return,) if isinstance(stmt, (ast.For, ast.While)) else kinds
        wanted = tuple(k for k in kinds if k in inner)
        if wanted and any(exits(block, wanted) for block in blocks(stmt)):
            return True
    return False


def blocks(stmt: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists directly inside a statement."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(stmt, field, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        yield part.body


def terminates(stmts: Sequence[ast.stmt]) -> bool:
    """Whether control never reaches the end of the statements."""
    if not stmts:
        return False
    last = stmts[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.If):
        return terminates(last.body) and terminates(last.orelse)
    return isinstance(last, ast.With) and terminates(last.body)


def bound(stmts: Sequence[ast.AST]) -> list[str]:
    """Names that the statements bind in their own scope, in order."""
    found: dict[str, None] = {}
    for node in walk(list(stmts)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, ast.alias):
            found[(node.asname or node.name).split(".")[0]] = None
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
    for name in _comprehension_targets(stmts):
        found.pop(name, None)
    return list(found)


def _comprehension_targets(stmts: Sequence[ast.AST]) -> set[str]:
    """Names that only comprehensions bind."""
    inside: set[str] = set()
    bindings: list[str] = []
    own: list[str] = []
    for node in walk(list(stmts)):
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                targets = [n.id for n in everywhere(generator.target) if isinstance(n, ast.Name)]
                inside.update(targets)
                own += targets
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bindings.append(node.id)
    return {name for name in inside if bindings.count(name) == own.count(name)}


def changed_containers(stmts: Sequence[ast.AST]) -> list[str]:
    """Names of lists, dicts and the like that the statements write into."""
    found: dict[str, None] = {}
    for node in walk(list(stmts)):
        target: ast.AST | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            target = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            target = node.func.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            found[target.id] = None
    return list(found)


def loads(node: ast.AST | Sequence[ast.AST]) -> set[str]:
    """Names that are read, nested scopes included."""
    nodes = [node] if isinstance(node, ast.AST) else node
    found: set[str] = set()
    for one in nodes:
        for inner in everywhere(one):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, (ast.Load, ast.Del)):
                found.add(inner.id)
            elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                found.add(inner.target.id)
    return found


def needed(stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Names that are read, by the statements or `after` them, before they are surely bound."""
    live = set(after)
    for stmt in reversed(stmts):
        live = _needed(stmt, live)
    return live


def _needed(stmt: ast.stmt, after: set[str]) -> set[str]:
    if isinstance(stmt, (ast.Return, ast.Raise)):
        return loads(stmt)
    if isinstance(stmt, ast.If):
        return loads(stmt.test) | needed(stmt.body, after) | needed(stmt.orelse, after)
    if isinstance(stmt, (ast.Assign, ast.AnnAssign)):
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        return (after - set(bound(targets))) | loads(stmt)
    if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
        return (after - {stmt.name}) | loads(stmt)
    if isinstance(stmt, ast.With):
        return loads([item.context_expr for item in stmt.items]) | needed(stmt.body, after)
    return after | loads(stmt)  # loops and try: any part may be skipped or run again
