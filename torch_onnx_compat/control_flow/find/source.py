"""From a function to its syntax tree and back to code, with the lines and columns of the user's file kept.

Whole files are parsed, so nothing has to be cut out or shifted: tracebacks of rewritten code show the user's lines and
debuggers stop at them.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

from torch_onnx_compat.control_flow.find.syntax import blocks, copy_tree, walk_all
from torch_onnx_compat.control_flow.lower.expressions import local_function, set_location
from torch_onnx_compat.places import short
from torch_onnx_compat.stack import frames

FunctionNode = ast.FunctionDef


class Unrewritable(Exception):
    """A function cannot be rewritten; the text says why, in words that follow its place."""


@dataclass(frozen=True)
class Definition:
    """Where a function is defined: its tree, and the class whose private names it may use."""

    node: FunctionNode
    owner: str
    """Name of the class that the definition stands in; empty outside one."""


def definition(code: types.CodeType) -> Definition:
    """The definition that a code object was compiled from, as a copy that may be changed.

    Raises:
        Unrewritable: Its source is not at hand, or it is no plain function.
    """
    found = _definitions(code.co_filename).get(code.co_firstlineno)
    if found is None:
        raise Unrewritable("its source is not at hand; define the model in a file")
    if not isinstance(found.node, ast.FunctionDef):
        raise Unrewritable("it is a coroutine")
    if code.co_flags & inspect.CO_GENERATOR:
        raise Unrewritable("it is a generator")
    return Definition(copy_tree(found.node), found.owner)


def source_lines(filename: str) -> list[str]:
    """The lines of a file, line ends kept."""
    return linecache.getlines(filename)


@functools.lru_cache(maxsize=256)
def _definitions(filename: str) -> dict[int, Definition]:
    """The functions of a file by the line that their code objects begin at, a decorator's included."""
    try:
        tree = ast.parse("".join(source_lines(filename)))
    except SyntaxError:
        return {}
    found: dict[int, Definition] = {}
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, owner = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[first] = Definition(node, owner)  # type: ignore[arg-type]
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        todo += [(stmt, inner) for block in blocks(node) for stmt in block]
    return found


def forget_sources() -> None:
    """Has files be parsed anew."""
    _definitions.cache_clear()


def compile_definition(node: FunctionNode, owner: str, code: types.CodeType) -> types.CodeType:
    """Code of a rewritten definition that can take the place of the function's old code.

    Args:
        node: The rewritten definition.
        owner: Class that the definition stands in.
        code: What the function runs now; the new code has the same free variables, since a function's are for life.

    Raises:
        Unrewritable: The rewriting changed which variables of outer scopes the function uses.
    """
    bare = _without_decoration(node)
    body: ast.stmt = bare
    if owner:  # so that the compiler mangles private names
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
"""CO_FUTURE_ANNOTATIONS, the one future statement that a file may still state."""


def _qualname_of(code: types.CodeType) -> dict[str, Any]:
    return {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}  # Python 3.11


def _without_decoration(node: FunctionNode) -> FunctionNode:
    """The definition without what is evaluated when it runs: decorators, defaults and annotations."""
    bare = copy.copy(node)
    bare.decorator_list, bare.returns = [], None
    bare.args = copy_tree(node.args)
    # The function object keeps its own defaults; only how many there are is part of the code, through the object.
    bare.args.defaults = []
    bare.args.kw_defaults = [None for _ in bare.args.kwonlyargs]
    for inner in walk_all(bare.args):
        if isinstance(inner, ast.arg):
            inner.annotation = None
    return bare


def lexical_chain(frame: types.FrameType) -> Iterator[types.FrameType]:
    """A frame and those below it on the stack whose code its own is written inside of."""
    yield frame
    code = frame.f_code
    for below in dropwhile(lambda other: other is not frame, frames()):
        if any(c is code for c in below.f_code.co_consts):
            yield below
            code = below.f_code


def place_of(filename: str, line: int) -> str:
    """``models/net.py:41``, as every message spells a place."""
    return short(filename, line)
