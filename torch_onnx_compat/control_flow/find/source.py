"""Turns a function into its syntax tree, and a rewritten tree into code with the lines and columns of the user's file.

The whole file is parsed, so that the positions in the tree are those in the file: tracebacks of rewritten code show
the user's lines, and debuggers stop at them.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Any

from torch_onnx_compat.control_flow.find.syntax import children, copy_tree, walk_all
from torch_onnx_compat.control_flow.lower.expressions import local_function, set_location
from torch_onnx_compat.places import short
from torch_onnx_compat.stack import frames

FunctionNode = ast.FunctionDef


class Unrewritable(Exception):
    """A function cannot be rewritten; the text is the reason, and is printed after the place."""


@dataclass(frozen=True)
class Definition:
    """The definition of a function: its tree, and the class around it."""

    node: FunctionNode
    owner: str
    """Name of the enclosing class, for the mangling of private names; empty outside a class."""
    libraries: frozenset[str] = frozenset()
    """Names under which its file imports modules of torch and numpy, whose functions write to no container."""


def definition(code: types.CodeType) -> Definition:
    """A copy of the definition that a code object was compiled from.

    Raises:
        Unrewritable: Its source is not available, or it is a coroutine.
    """
    candidates = _definitions(code.co_filename).get(code.co_firstlineno, [])
    found = _choose(code, candidates)
    if found is None and source_lines(code.co_filename):
        raise Unrewritable(f"{_describe(code)} in line {code.co_firstlineno} has no def of its own; write one")
    if found is None:
        raise Unrewritable("its source is not at hand; define the model in a file")
    if not isinstance(found.node, ast.FunctionDef):
        raise Unrewritable("it is a coroutine")
    return replace(found, node=copy_tree(found.node))


def _choose(code: types.CodeType, candidates: list[Definition]) -> Definition | None:
    """The definition that a code was compiled from, among those that begin in its first line.

    Raises:
        Unrewritable: Several lambdas fit.
    """
    fit = [found for found in candidates if found.node.name == code.co_name]
    if code.co_name != LAMBDA or len(fit) < 2:
        return fit[-1] if fit else None
    if hasattr(code, "co_positions"):  # Python 3.11
        columns = {place[2] for place in code.co_positions() if place[0] == place[1] and place[2]}
        fit = [found for found in fit if _covers(found.node, columns)]
        fit = sorted(fit, key=lambda found: _width(found.node))[:1]
    else:  # what compiles to the same code is the same function
        fit = [found for found in fit if _compiles_to(found, code)][:1]
    if len(fit) != 1:
        raise Unrewritable(f"several lambdas stand in line {code.co_firstlineno}; give each a line")
    return fit[0]


def _compiles_to(found: Definition, code: types.CodeType) -> bool:
    try:
        compiled = compile_definition(found.node, found.owner, code)
    except Unrewritable:
        return False
    return compiled.replace(co_flags=code.co_flags) == code  # a flag says that it was nested


def _covers(node: FunctionNode, columns: set[int]) -> bool:
    first, last = node.body[0].col_offset, node.body[0].end_col_offset or 0
    return bool(columns) and all(first <= column <= last for column in columns)


def _width(node: FunctionNode) -> int:
    return (node.body[0].end_col_offset or 0) - node.body[0].col_offset


def _describe(code: types.CodeType) -> str:
    """What a code is, for a message: ``the lambda``, ``the class body``, ``f``."""
    names = {LAMBDA: "the lambda", "<module>": "the code", "<genexpr>": "the generator expression"}
    return names.get(code.co_name, code.co_name.strip("<>"))


def codes_inside(code: types.CodeType) -> list[types.CodeType]:
    """The codes of the functions inside a function, at any depth."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [*inner, *(one for each in inner for one in codes_inside(each))]


def source_lines(filename: str) -> list[str]:
    """The lines of a file, with their line ends."""
    return linecache.getlines(filename)


@functools.lru_cache(maxsize=256)
def _definitions(filename: str) -> dict[int, list[Definition]]:
    """The functions of a file by the first line of their code objects, at the first decorator if there is one."""
    try:
        tree = ast.parse("".join(source_lines(filename)))
    except SyntaxError:
        return {}
    libraries = frozenset(_libraries(tree))
    found: dict[int, list[Definition]] = {}
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, owner = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(first, []).append(Definition(node, owner, libraries))  # type: ignore[arg-type]
        elif isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(Definition(_as_function(node), owner, libraries))
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        todo += [(child, inner) for child in children(node)]
    return found


def _libraries(tree: ast.Module) -> Iterator[str]:
    for stmt in tree.body:
        for alias in stmt.names if isinstance(stmt, ast.Import) else ():
            if alias.name.partition(".")[0] in ("torch", "numpy"):
                yield alias.asname or alias.name.partition(".")[0]


LAMBDA = "<lambda>"


def _as_function(node: ast.Lambda) -> FunctionNode:
    """``lambda x: y`` as a function whose only statement is ``return y``."""
    made = local_function(LAMBDA, [], [ast.copy_location(ast.Return(node.body), node.body)], node)
    made.args = node.args
    return made


def forget_sources() -> None:
    """Empties the cache of parsed files."""
    _definitions.cache_clear()


def compile_definition(node: FunctionNode, owner: str, code: types.CodeType) -> types.CodeType:
    """Compiles a rewritten definition to code that can replace the function's own.

    Args:
        node: The rewritten definition.
        owner: Name of the enclosing class; empty outside a class.
        code: The function's present code. The new code has the same free variables: a function object cannot change
            its closure.

    Raises:
        Unrewritable: The rewriting changed which variables of outer scopes the function uses.
    """
    bare = _without_decoration(node)
    if bare.name == LAMBDA:
        bare.name = "lambda_"
    body: ast.stmt = bare
    if owner:  # the compiler mangles private names inside a class only
        more: Any = {"type_params": []} if "type_params" in ast.ClassDef._fields else {}  # Python 3.12
        body = set_location(
            ast.ClassDef(name=owner, bases=[], keywords=[], body=[bare], decorator_list=[], **more), node
        )
    free = [name for name in code.co_freevars if name != "__class__"]
    if free:
        body = local_function("outer", free, [body], node)
    module = set_location(ast.Module(body=[body], type_ignores=[]), node)
    whole = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURES, dont_inherit=True)
    names = [*(["outer"] if free else []), *([owner] if owner else []), bare.name]
    new = whole
    for name in names:
        new = next(c for c in new.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    if new.co_freevars != code.co_freevars:
        raise Unrewritable(f"it would use {new.co_freevars} of the scopes around it instead of {code.co_freevars}")
    named: types.CodeType = new.replace(co_name=code.co_name, **_qualname_of(code))
    return named


_FUTURES = 0x1000000
"""CO_FUTURE_ANNOTATIONS: the only future statement that is still optional."""


def _qualname_of(code: types.CodeType) -> dict[str, Any]:
    return {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}  # Python 3.11


def _without_decoration(node: FunctionNode) -> FunctionNode:
    """The definition without its decorators, defaults and annotations, which run when it is executed."""
    bare = copy.copy(node)
    bare.decorator_list, bare.returns = [], None
    bare.args = copy_tree(node.args)
    # Defaults belong to the function object, which stays; the code does not hold them.
    bare.args.defaults = []
    bare.args.kw_defaults = [None for _ in bare.args.kwonlyargs]
    for inner in walk_all(bare.args):
        if isinstance(inner, ast.arg):
            inner.annotation = None
    return bare


def lexical_chain(frame: types.FrameType) -> Iterator[types.FrameType]:
    """A frame, and the frames of the functions that lexically enclose it and are on the stack.

    The code of a file or of a class body is no function's, though it may be running, too.
    """
    yield frame
    code = frame.f_code
    for below in dropwhile(lambda other: other is not frame, frames()):
        if any(c is code for c in below.f_code.co_consts) and below.f_code.co_flags & inspect.CO_OPTIMIZED:
            yield below
            code = below.f_code


def place_of(filename: str, line: int) -> str:
    """A place as messages spell it: ``models/net.py:41``."""
    return short(filename, line)
