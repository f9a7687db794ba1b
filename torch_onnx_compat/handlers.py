"""A model's exception handlers: the file goes another way where they get an error that only the capture has.

A capture runs the model on what is no number and no plain tensor. Where that lacks something there is an error, which
ends the capture, unless the model catches it. So while a model is captured, each of its handlers tells which error it
gets; afterwards these are compared with the errors that it gets in eager torch on the same inputs. A handler is an
``except``, a ``finally``, which may return, and the ``__exit__`` of one of its classes or of contextlib.suppress.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import sys
import traceback
import types
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch_onnx_compat.backends.checks import Place, innermost_statements
from torch_onnx_compat.caller.reach import is_followed
from torch_onnx_compat.places import first_line, short
from torch_onnx_compat.stack import frames_of_model


@dataclass(frozen=True)
class CaughtError:
    """An error that the model's code caught."""

    kind: str
    """The name of its class."""
    place: str
    """The model's statement that had it, ``models/net.py:41``."""
    handler: str
    """The place of the handler."""
    arguments: tuple[Any, ...] = field(default=(), compare=False)
    """What it was made of. A text of it, while the model is captured, would be one that the model makes of a size."""

    def __str__(self) -> str:
        text = first_line(Exception(*self.arguments)).rstrip(".")
        return f"{self.place}: {self.kind}: {text}"


class CaughtErrors:
    """Notes the errors that handlers get; a context that may be entered several times.

    Args:
        functions: Those with handlers, whose code is exchanged meanwhile. Rewritten code tells by itself.
    """

    def __init__(self, functions: Collection[types.FunctionType] = ()) -> None:
        self._functions = functions
        self._scopes: list[ExitStack] = []
        self.found: dict[CaughtError, None] = {}
        self.may_suppress = False
        """Whether the model entered a contextlib.suppress."""

    @property
    def may_catch(self) -> bool:
        """Whether the model may catch an error, as far as its code tells, and the run so far."""
        return bool(self._functions) or self.may_suppress

    def __enter__(self) -> CaughtErrors:
        with ExitStack() as stack:
            stack.enter_context(_noted_by(self))
            stack.enter_context(_let_tell(self._functions))
            stack.enter_context(_let_suppress_tell())
            self._scopes.append(stack.pop_all())
        return self

    def __exit__(self, *error: object) -> None:
        self._scopes.pop().close()

    def add(self, error: BaseException, handler: Place) -> None:
        """Notes an error, and the statement that caught it; but not what a module does while it is imported."""
        if any(frame.f_code.co_filename.startswith("<frozen importlib") for frame in frames_of_model()):
            return
        frames = list(traceback.walk_tb(error.__traceback__))  # empty for a group
        own = [(f.f_code.co_filename, line) for f, line in frames if is_followed(f.f_globals.get("__name__"))]
        filename, line = own[-1] if own else (handler.filename, handler.line)
        statement = next(innermost_statements(Place(filename, line)), None)
        place = short(filename, line if statement is None else statement.lineno)
        handled_at = short(handler.filename, handler.line)
        self.found[CaughtError(type(error).__name__, place, handled_at, error.args)] = None


_logs: list[CaughtErrors] = []
"""Those that note errors now: the innermost one does."""


@contextmanager
def _noted_by(log: CaughtErrors) -> Iterator[None]:
    _logs.append(log)
    try:
        yield
    finally:
        _logs.remove(log)


def tell() -> None:
    """Notes the error that is handled now; called where a handler of the model's begins."""
    frame, error = sys._getframe(1), sys.exc_info()[1]
    if _logs and isinstance(error, Exception):  # what ends a generator is none
        _logs[-1].add(error, Place(frame.f_code.co_filename, frame.f_lineno))


@contextmanager
def _let_tell(functions: Collection[types.FunctionType]) -> Iterator[None]:
    """While active, the handlers of these functions tell."""
    exchanged: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for function in functions:
            code = function.__code__
            new = _code_that_tells(code)
            if new is not None:
                exchanged.append((function, code))
                function.__code__ = new
        yield
    finally:
        for function, code in reversed(exchanged):
            function.__code__ = code


@contextmanager
def _let_suppress_tell() -> Iterator[None]:
    """While active, `contextlib.suppress` tells which error of the model's code it drops."""
    plain: Any = contextlib.suppress.__exit__
    plain_enter: Any = contextlib.suppress.__enter__

    def enter(self: Any) -> Any:
        if _logs and is_followed(sys._getframe(1).f_globals.get("__name__")):
            _logs[-1].may_suppress = True
        return plain_enter(self)

    def leave(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        drops = plain(self, kind, error, trace)
        frame = sys._getframe(1)
        if drops and _logs and is_followed(frame.f_globals.get("__name__")):
            _logs[-1].add(error.with_traceback(trace), Place(frame.f_code.co_filename, frame.f_lineno))
        return drops

    try:
        contextlib.suppress.__enter__ = enter  # type: ignore[method-assign]
        contextlib.suppress.__exit__ = leave  # type: ignore[method-assign]
        yield
    finally:
        contextlib.suppress.__enter__ = plain_enter  # type: ignore[method-assign]
        contextlib.suppress.__exit__ = plain  # type: ignore[method-assign]


@functools.lru_cache(maxsize=1024)
def _code_that_tells(code: types.CodeType) -> types.CodeType | None:
    """The code of a function whose handlers tell; None if it has none, or its source is not at hand.

    It is not at hand, either, if the file was edited after it was imported.
    """
    from torch_onnx_compat.control_flow.find.source import Unrewritable, compile_definition, definition

    try:
        found = definition(code)
        is_at_hand = _does_the_same(compile_definition(found.node, found.owner, code), code)
        if not is_at_hand or not let_handlers_tell(found.node):
            return None
        return compile_definition(found.node, found.owner, code)
    except Unrewritable:
        return None


def _does_the_same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same, wherever their lines are: of a decorated function the first one is another."""
    return list(_operations(one)) == list(_operations(other))


def _operations(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """What a code and the functions in it do; how a method is called depends on what the rest of the file imports."""
    for step in dis.get_instructions(code):
        if isinstance(step.argval, types.CodeType):
            yield from _operations(step.argval)
        elif step.opname not in _WAYS_TO_CALL:
            name = "LOAD_ATTR" if step.opname == "LOAD_METHOD" else step.opname
            yield name, "" if step.opcode in _JUMPS else repr(step.argval)


_WAYS_TO_CALL = frozenset({"PUSH_NULL", "PRECALL", "EXTENDED_ARG", "CACHE", "NOP"})
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def let_handlers_tell(node: ast.AST) -> bool:
    """Lets each handler in a tree call `tell` first; returns whether there is any."""
    blocks = list(_handlers_in(node))
    for block in blocks:
        call = ast.parse(_CALL).body[0]
        for inner in ast.walk(call):
            ast.copy_location(inner, block[0])
        block.insert(0, call)
    return bool(blocks)


def _handlers_in(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.ExceptHandler) or (isinstance(inner, ast.FunctionDef) and inner.name == "__exit__"):
            yield inner.body
        elif getattr(inner, "finalbody", None):
            yield inner.finalbody  # type: ignore[attr-defined]


_CALL = f"__import__({__name__!r}, fromlist=['tell']).tell()"
"""It binds no name: rewritten code passes its variables on."""
