"""Whether what a statement computes is only told: in an error, a warning, an assertion, a log, or a profile.

A size or a value may become a part of a message, and decides nothing there. A text is followed through the variables
of a function, and into the functions that it is given to: ``check(x.ndim == 4, f"wanted 4 axes, got {x.shape}")``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from torch_onnx_compat.backends.checks import (
    FUNCTIONS,
    Place,
    contains,
    innermost_statements,
    is_assertion,
    is_caught,
    is_warning,
    only_complains,
    tree_around,
)


def forget_functions() -> None:
    """Forgets what was known of the functions of modules: between two exports, a name may get another one."""
    for known in (is_message, leads_to_error, _module_of, _tells_parameter):
        known.cache_clear()


@functools.lru_cache(maxsize=512)
def is_message(place: Place, *, may_be_tested: bool = True) -> bool:
    """Whether what a place computes is only told: in an error, a warning, an assertion, a log, or a profile.

    Nothing else may get it: no function but those that keep nothing, such as ``float`` and ``round``, and those that
    only tell what they are given. A variable is followed as far as the function that it belongs to: each use of it has
    to be in such a message, or in the test of an if that does nothing but complain, and nobody may catch the error.

    Args:
        place: Computes a number or a text.
        may_be_tested: Whether it may be in such a test.
    """
    statement = next(innermost_statements(place), None)
    if isinstance(statement, ast.Raise):
        return True
    if statement is None or any(contains(node, place) for node in _handed_on(statement, place, may_be_tested)):
        return False
    if any(contains(node, place) for node in _told_by_calls(statement, place, may_be_tested)):
        return not is_caught(place)
    if isinstance(statement, ast.With):
        return any(contains(item.context_expr, place) and _names_a_span(item) for item in statement.items)
    if _tells(statement):
        return True
    name = _variable_of(statement)
    return bool(name) and _is_only_told(name, place, may_be_tested)


@functools.lru_cache(maxsize=512)
def leads_to_error(place: Place) -> bool:
    """Whether a place lies in an error that is raised, or in a block that ends with one that nobody catches.

    Such a block may make its message in several statements, with branches of their own.
    """
    if isinstance(next(innermost_statements(place), None), ast.Raise):
        return True
    if is_caught(place):
        return False
    function = _function_around(place)
    blocks = _blocks_that_raise(list(ast.walk(function))) if function is not None else ()
    return any(contains(statement, place) for block in blocks for statement in block)


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement computes itself: not the statements in it, and no error, with which the model ends."""
    left: list[ast.AST] = [] if isinstance(statement, ast.Raise) else [statement]
    while left:
        node = left.pop()
        yield node
        left += (inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, (ast.stmt, ast.excepthandler)))


def _tells(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Raise, ast.Assert)) or is_warning(statement) or is_assertion(statement)


def _handed_on(statement: ast.stmt, place: Place, may_be_tested: bool) -> Iterator[ast.expr]:
    """The expressions of a statement whose values may stay somewhere: arguments of functions that may keep them."""
    telling = statement.value if isinstance(statement, ast.Expr) and _tells(statement) else None
    for node in own_nodes(statement):
        if isinstance(node, ast.NamedExpr):
            yield node.value
        elif isinstance(node, ast.Call) and node is not telling and _may_keep(node):
            told = _told_arguments(node, place, may_be_tested)
            yield from (given for given in _arguments(node) if given not in told)
        elif isinstance(node, _SCOPES_OF_EXPRESSIONS) and any(
            isinstance(inner, ast.Call) and _may_keep(inner) for inner in ast.walk(node)
        ):
            yield node  # its variables hold parts of what it goes through


def _told_by_calls(statement: ast.stmt, place: Place, may_be_tested: bool) -> Iterator[ast.expr]:
    """The arguments in a statement that the functions which get them only tell."""
    for node in own_nodes(statement):
        if isinstance(node, ast.Call):
            yield from _told_arguments(node, place, may_be_tested)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


_SCOPES_OF_EXPRESSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def _may_keep(call: ast.Call) -> bool:
    if not call.args and not call.keywords:
        return False
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if isinstance(call.func, ast.Attribute):
        is_known = owner == "math" or (name in _OF_TEXTS and isinstance(call.func.value, _MAY_BE_TEXT))
    else:
        is_known = name in _KEEP_NOTHING
    return not is_known and not ast.unparse(call.func).endswith(_SPANS)


_KEEP_NOTHING = frozenset(
    {
        *("str", "repr", "format", "float", "int", "bool", "round", "abs", "len"),
        *("min", "max", "sum", "sorted", "tuple", "list"),
    }
)
"""Functions that make a number or a text of what they are given, or a list that is only in their result."""

_OF_TEXTS = ("format", "join", "replace", "ljust", "rjust")
_MAY_BE_TEXT = (ast.Constant, ast.JoinedStr, ast.Name)

_SPANS = ("record_function", "nvtx.range")


def _names_a_span(item: ast.withitem) -> bool:
    """Whether a block is only named, for a profile of the model."""
    call = item.context_expr
    return isinstance(call, ast.Call) and item.optional_vars is None and ast.unparse(call.func).endswith(_SPANS)


# Variables


def _variable_of(statement: ast.stmt) -> str:
    """The one variable that a statement computes; empty where it computes, or may change, something else."""
    if isinstance(statement, ast.AugAssign) and not _is_text(statement.value):
        return ""  # a list would be changed in place, under each of its names
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    is_assignment = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    names = [target.id for target in targets if is_assignment and isinstance(target, ast.Name)]
    return names[0] if len(names) == len(targets) == 1 else ""


def _is_text(node: ast.expr) -> bool:
    is_made = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("str", "repr", "format")
    return is_made or isinstance(node, ast.JoinedStr)


def _is_only_told(name: str, place: Place, may_be_tested: bool) -> bool:
    """Whether each use of a variable, in the function around a place, lies in a message."""
    function = _function_around(place)
    if function is None:
        return False
    around = list(ast.walk(function))
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in around):
        return False
    if any(isinstance(node, ast.Name) and node.id in ("locals", "vars", "eval", "exec") for node in around):
        return False
    told = _told_nodes(around, place, may_be_tested)
    uses = [n for n in around if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Store)]
    return all(id(node) in told for node in uses)


def _told_nodes(nodes: list[ast.AST], place: Place, may_be_tested: bool) -> set[int]:
    """The identities of those nodes of a function that only go into messages."""
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    messages = [s for s in statements if _tells(s)]
    if may_be_tested:
        messages += [s for s in statements if isinstance(s, ast.If) and only_complains(s)]
    told = _nodes_told_by(messages, place)
    for statement in statements:
        told -= {id(node) for kept in _handed_on(statement, place, may_be_tested) for node in ast.walk(kept)}
        told |= _nodes_told_by(_told_by_calls(statement, place, may_be_tested), place)
    for block in _blocks_that_raise(nodes):
        told |= _nodes_told_by(block, place)
    return told | {id(node.left) for node in nodes if isinstance(node, ast.Compare) and _asks_for_none(node)}


def _function_around(place: Place) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    functions = [n for n in ast.walk(tree_around(place)) if isinstance(n, FUNCTIONS) and contains(n, place)]
    return max(functions, key=lambda node: node.lineno) if functions else None


def _nodes_told_by(messages: Iterable[ast.stmt | ast.expr], place: Place) -> set[int]:
    """The identities of the nodes of messages, but those of errors that somebody around them may catch."""
    uncaught = (m for m in messages if not is_caught(Place(place.filename, m.lineno, m.col_offset)))
    return {id(node) for message in uncaught for node in ast.walk(message)}


def _blocks_that_raise(nodes: list[ast.AST]) -> Iterator[list[ast.stmt]]:
    """The blocks that end with an error in any case: nothing of what they compute is left.

    Whatever a ``with`` stands for may take the error back.
    """
    shielded = {id(inner) for node in nodes if isinstance(node, _SHIELDS) for inner in ast.walk(node)}
    for node in nodes:
        if id(node) in shielded:
            continue
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list) and block and isinstance(block[-1], ast.Raise):
                inside = (inner for statement in block for inner in ast.walk(statement))
                if not isinstance(node, FUNCTIONS) and not any(isinstance(inner, _LEAVES) for inner in inside):
                    yield block


_SHIELDS = (ast.With, ast.AsyncWith)
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


def _asks_for_none(node: ast.Compare) -> bool:
    """Whether it asks if a variable is None, which no text is."""
    others = (isinstance(other, ast.Constant) and other.value is None for other in node.comparators)
    return all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops) and all(others)


# Functions that only tell what they are given


def _told_arguments(call: ast.Call, place: Place, may_be_tested: bool) -> list[ast.expr]:
    """The arguments of a call that the function only tells; none where nobody knows which function it is."""
    given = _arguments(call)
    is_plain = not any(isinstance(argument, ast.Starred) for argument in call.args)
    function = _function_called(call.func, place) if given and is_plain else None
    if function is None:
        return []
    names = [keyword.arg for keyword in call.keywords]
    positional = [p.name for p in inspect.signature(function).parameters.values() if p.kind in _BY_POSITION]
    by_name = zip(call.keywords, names, strict=True)
    pairs = [*zip(call.args, positional, strict=False), *((k.value, n) for k, n in by_name if n is not None)]
    return [argument for argument, name in pairs if _tells_parameter(function.__code__, name, may_be_tested)]


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _function_called(name: ast.expr, place: Place) -> types.FunctionType | None:
    """The function of the module that a name stands for, where no function around the place has the name itself."""
    words = ast.unparse(name).split(".") if isinstance(name, (ast.Name, ast.Attribute)) else []
    if not words or not all(word.isidentifier() for word in words) or words[0] in _names_around(place):
        return None
    found: Any = _module_of(place.filename)
    for word in words:
        if not isinstance(found, types.ModuleType):
            return None  # a method has its object for the first argument
        found = vars(found).get(word)
    is_own = isinstance(found, types.FunctionType) and not hasattr(found, "__wrapped__")
    return found if is_own and not inspect.iscoroutinefunction(found) else None


@functools.lru_cache(maxsize=64)
def _module_of(filename: str) -> types.ModuleType | None:
    # Their own attributes alone: one that is imported when it is used raises whatever its import does.
    loaded = [m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)]
    modules = [m for m in loaded if vars(m).get("__file__") == filename]
    return modules[0] if len(modules) == 1 else None


@functools.lru_cache(maxsize=64)
def _names_around(place: Place) -> frozenset[str]:
    """The names that the functions and classes around a place give to something themselves."""
    scopes = (*FUNCTIONS, ast.ClassDef)
    around = [n for n in ast.walk(tree_around(place)) if isinstance(n, scopes) and contains(n, place)]
    inside = [node for scope in around for node in ast.walk(scope)]
    names = {node.arg for node in inside if isinstance(node, ast.arg)}
    names |= {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names |= {
        alias.asname or alias.name.partition(".")[0] for n in inside if isinstance(n, _IMPORTS) for alias in n.names
    }
    return frozenset(names | {node.name for node in inside if isinstance(node, scopes) and node not in around})


_IMPORTS = (ast.Import, ast.ImportFrom)
_open: set[tuple[types.CodeType, str]] = set()
"""The functions and parameters that are being looked at: one that calls itself is met again."""


@functools.lru_cache(maxsize=512)
def _tells_parameter(code: types.CodeType, name: str, may_be_tested: bool) -> bool:
    """Whether a function does nothing with a parameter but tell it; not if it calls itself with it."""
    if (code, name) in _open or name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return False
    place = _place_in(code)
    if place is None:
        return False
    _open.add((code, name))
    try:
        return _is_only_told(name, place, may_be_tested)
    finally:
        _open.discard((code, name))


def _place_in(code: types.CodeType) -> Place | None:
    """The first statement of a function; None where its source is not at hand, or is another function's."""
    here = Place(code.co_filename, code.co_firstlineno)
    functions = [n for n in ast.walk(tree_around(here)) if isinstance(n, FUNCTIONS) and n.name == code.co_name]
    first = {min([n.lineno, *(decorator.lineno for decorator in n.decorator_list)]): n for n in functions}
    function = first.get(code.co_firstlineno)
    if function is None or function.decorator_list:
        return None
    return Place(code.co_filename, function.body[0].lineno, function.body[0].col_offset)
