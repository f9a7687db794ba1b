"""Names that statements read and bind, and liveness: the parameters and results of a branch follow from these.

The lowering asks for the same statements at every level of nesting, hence the cache. A cached answer stays right when
a statement is moved: its names stay the same.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch_onnx_compat.control_flow.find.syntax import SCOPES, children, walk_all, walk_scope
from torch_onnx_compat.control_flow.lower.effects import OWNER_OF, owner_of_write, side_effect

_MUTATORS = frozenset(
    {"append", "extend", "insert", "pop", "popitem", "update", "setdefault", "add", "remove", "discard", "clear"}
    | {"sort", "reverse"}
)


@dataclass(frozen=True)
class NameUsage:
    """The names that one node of a tree uses, as keys of dicts, in order."""

    reads: dict[str, None] = field(default_factory=dict)
    """Names that it reads, nested scopes included."""
    binds: dict[str, None] = field(default_factory=dict)
    """Names that it binds in its own scope."""
    changes: dict[str, None] = field(default_factory=dict)
    """Names of lists, dicts and other containers that it writes to."""
    side_effects: dict[str, str] = field(default_factory=dict)
    """Its side effects, each with its line, and ``a.b`` where it binds ``a.b.c``, else an empty text."""


@functools.lru_cache(maxsize=4096)
def name_usage(root: ast.AST) -> NameUsage:
    """The names that a tree uses, the statements inside it included."""
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
            found.reads.update(_reads_within(node.target))  # a comprehension binds its target in a scope of its own
            todo += [*reversed(node.ifs), node.iter]
        else:
            if isinstance(node, _NOTED):
                _note(node, found)
            todo += reversed(children(node))
    return found


_NOTED = (
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.AugAssign,
    ast.alias,
    ast.ExceptHandler,
    ast.Delete,
    ast.Global,
    ast.Nonlocal,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)
"""Kinds of nodes that bind a name, write to a container or have a side effect."""


def _note(node: ast.AST, found: NameUsage) -> None:
    """Adds the names that a node itself binds or writes to, and its side effect."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.reads[node.target.id] = None
    elif isinstance(node, ast.alias):
        found.binds[(node.asname or node.name).split(".")[0]] = None
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.binds[node.name] = None
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.binds[node.rest] = None
    changed = _write_target(node)
    while isinstance(changed, ast.Subscript) or _is_owner(changed):
        changed = changed.value if isinstance(changed, ast.Subscript) else changed.args[0]  # type: ignore[union-attr]
    if isinstance(changed, ast.Name):
        found.changes[changed.id] = None
    what = side_effect(node)
    if what:
        found.side_effects[f"line {getattr(node, 'lineno', 0)} {what}"] = owner_of_write(node)


def _is_owner(node: ast.AST | None) -> bool:
    """Whether it is what the rewriting of ``x[i][j] = y`` writes to."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == OWNER_OF


def _write_target(node: ast.AST) -> ast.AST | None:
    """The container that a node writes to; None if it writes to none."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
        return node.func.value
    return node.target if isinstance(node, ast.AugAssign) else None


def _reads_within(node: ast.AST) -> dict[str, None]:
    """Names that are read inside a nested scope, at any depth."""
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
    """Names of lists, dicts and other containers that the statements write to."""
    return list(dict.fromkeys(name for stmt in stmts for name in name_usage(stmt).changes))


def overwritten_by(stmts: Sequence[ast.AST]) -> list[str]:
    """Names of tensors that the statements write to by a method, as ``x.add_(1)``."""
    calls = (node.func for node in walk_scope(stmts) if isinstance(node, ast.Call))
    methods = (call for call in calls if isinstance(call, ast.Attribute) and _is_in_place(call.attr))
    return [method.value.id for method in methods if isinstance(method.value, ast.Name)]


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def side_effects(stmts: Sequence[ast.AST]) -> dict[str, str]:
    """The side effects of some statements, and ``a.b`` where one binds ``a.b.c``, else an empty text."""
    return {what: owner for stmt in stmts for what, owner in name_usage(stmt).side_effects.items()}


def loads(node: ast.AST | Sequence[ast.AST]) -> set[str]:
    """Names that are read, nested scopes included."""
    found: set[str] = set()
    for one in [node] if isinstance(node, ast.AST) else node:
        found.update(name_usage(one).reads)
    return found


@dataclass(frozen=True)
class Scope:
    """The names of one function, as the lowering of its statements needs them."""

    own: set[str] = field(default_factory=set)
    """Its parameters, and the names that it binds; the lowering adds variables of its own."""
    shared: frozenset[str] = frozenset()
    """Those of its own names that a nested function, lambda or class reads: these stay one variable."""
    outer: frozenset[str] = frozenset()
    """Names that it declares global or nonlocal."""
    writers: dict[str, str] = field(default_factory=dict)
    """Its nested functions that bind names of outer scopes, with these names."""


def scope_of(node: ast.FunctionDef) -> Scope:
    """The names of a function."""
    inside = [one for stmt in node.body for one in walk_scope(stmt)]
    outer = {name for one in inside if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    own = ({arg.arg for arg in walk_all(node.args) if isinstance(arg, ast.arg)} | {*names_bound_by(node.body)}) - outer
    called = {id(one.args[0]) for one in inside if isinstance(one, ast.Call) and len(one.args) == 1}
    later: list[ast.AST] = [one for one in inside if isinstance(one, SCOPES)]
    later += [one for one in inside if isinstance(one, ast.GeneratorExp) and id(one) not in called]
    shared = {name for one in later for name in _reads_within(one) if name not in _own_names(one)}
    writers = {_name(one): ", ".join(_declared(one)) for one in later if _name(one) and _declared(one)}
    return Scope(own, frozenset(shared & own), frozenset(outer), writers)


def _name(scope: ast.AST) -> str:
    return getattr(scope, "name", "")  # a lambda has none


def _own_names(scope: ast.AST) -> set[str]:
    """Parameters of a nested function, and names that only it binds."""
    if isinstance(scope, ast.GeneratorExp):
        return {*names_bound_by([generator.target for generator in scope.generators])}
    arguments = getattr(scope, "args", None)
    found = {arg.arg for arg in walk_all(arguments) if isinstance(arg, ast.arg)} if arguments is not None else set()
    return found if isinstance(scope, ast.Lambda) else (found | {*names_bound_by(scope.body)}) - set(_declared(scope))  # type: ignore[attr-defined]


def _declared(scope: ast.AST) -> list[str]:
    """Names that a nested function, at any depth, declares global or nonlocal."""
    declarations = (one for one in walk_all(scope) if isinstance(one, (ast.Global, ast.Nonlocal)))
    return list(dict.fromkeys(name for one in declarations for name in one.names))


def live_before(stmts: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Liveness: the names that are live before the statements, given those that are live `after` them."""
    live = set(after)
    for stmt in reversed(stmts):
        live = _live_before_statement(stmt, live)
    return live


def read_by_rounds(loop: ast.For | ast.While) -> set[str]:
    """The names that a round reads before it binds them, and those that are read after the last one in the ``else``."""
    read = live_before(loop.body, set())
    read = read | loads(loop.test) if isinstance(loop, ast.While) else read - {*names_bound_by([loop.target])}
    return read | loads(loop.orelse)


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
    if isinstance(stmt, (ast.For, ast.While)):
        return after | read_by_rounds(stmt) | (loads(stmt.iter) if isinstance(stmt, ast.For) else set())
    return after | loads(stmt)  # try: any part may be skipped
