"""What is made of a symbolic number is told to whoever watches: its text, its hash, a plain number, torch's error.

torch has no hook for any of these, so methods of its classes are exchanged while somebody watches.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from torch_onnx_compat.backends.internals.symbolic import PLAIN_KINDS, Symbols, number_of


def _reader(
    torchs_own: Callable[..., Any], symbols: Symbols, read: Callable[[Any], bool], plain: Callable[..., Any]
) -> Callable[..., Any]:
    """The method of a symbolic size that tells `read`, and answers as the example's number or as an object."""

    def method(self: Any, *args: Any) -> Any:
        if getattr(self.node, "shape_env", None) is not symbols.environment:
            return torchs_own(self, *args)
        return object.__hash__(self) if read(self) else plain(PLAIN_KINDS[type(self)](number_of(self)), *args)

    return method


_KINDS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_TEXTS: dict[str, Callable[..., Any]] = {"__str__": str, "__repr__": repr, "__format__": format}


@contextmanager
def watch_numbers(symbols: Symbols, read: Callable[[str, Any], bool]) -> Iterator[None]:
    """While active, texts of symbolic numbers and hashes of sizes are the example's, and `read` is told of them.

    The hash of a symbolic float or bool is that of its value, for which torch itself asks.

    Args:
        symbols: Whose numbers; a model that calls torch.cond makes torch compile, with sizes of its own.
        read: Told what is read, ``"text"`` or ``"hash"``, and of what; says whether the hash is to be the object's.
    """
    with ExitStack() as stack:
        for kind in _KINDS:
            for name, plain in _TEXTS.items():
                method = _reader(getattr(kind, name), symbols, partial(read, "text"), plain)
                stack.enter_context(_with_method(kind, name, method))
        method = _reader(torch.SymInt.__hash__, symbols, partial(read, "hash"), hash)
        stack.enter_context(_with_method(torch.SymInt, "__hash__", method))
        yield


@contextmanager
def watch_texts(read: Callable[[Any], str | None]) -> Iterator[None]:
    """While active, `read` is told the symbolic number of which a text is made; it may give the text."""

    def reader(plain: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            text = read(self) if self.node.expr.free_symbols else None
            return plain(self, *args) if text is None else text

        return method

    with ExitStack() as stack:
        for kind in _KINDS:
            for name in _TEXTS:
                stack.enter_context(_with_method(kind, name, reader(getattr(kind, name))))
        yield


_DIVISIONS = ("_int_floordiv", "_int_truediv", "_float_truediv", "_mod")


@contextmanager
def watch_divisors(symbols: Symbols, note: Callable[[Any], None]) -> Iterator[None]:
    """While active, `note` is told each expression that is divided by: Python raises an error where it is 0.

    Args:
        symbols: Whose numbers.
        note: Told the divisor's expression.
    """
    from torch.fx.experimental.sym_node import SymNode

    def watcher(plain: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, other: Any) -> Any:
            if self.shape_env is symbols.environment and other.expr.free_symbols:
                note(other.expr)
            return plain(self, other)

        return method

    with ExitStack() as stack:
        for name in _DIVISIONS:
            stack.enter_context(_with_method(SymNode, name, watcher(getattr(SymNode, name))))
        yield


@contextmanager
def _with_method(kind: type, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """While active, a class has this method."""
    before = vars(kind).get(name)
    setattr(kind, name, method)
    try:
        yield
    finally:
        if before is None:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


@contextmanager
def hashes(key_of: Callable[[Any, types.FrameType], int | None]) -> Iterator[None]:
    """While active, a symbolic size has a hash where torch.export has none.

    Args:
        key_of: Gives the hash of a size that the code in a frame looks up; None for torch's error.
    """
    before = torch.SymInt.__hash__

    def hash_of(size: Any) -> int:
        try:
            return before(size)
        except TypeError:
            key = key_of(size, sys._getframe(1))
            if key is None:
                raise
            return key

    torch.SymInt.__hash__ = hash_of  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.SymInt.__hash__ = before  # type: ignore[method-assign]


@contextmanager
def watch_plain_numbers(is_told: Callable[[type, Any, Any], bool]) -> Iterator[None]:
    """While active, each symbolic number that becomes a plain one is asked about.

    torch.export notes no condition for a float, as it does for a size that becomes an int.

    Args:
        is_told: Whether a number of this kind, int or float, of this expression, and of this value at the example, is
            only told. Then it becomes the example's, or 1 where it has none, and nothing is assumed.
    """
    from torch.fx.experimental.sym_node import SymNode

    def reader(kind: type, plain: Callable[..., Any]) -> Callable[..., Any]:
        def guard(self: Any, *args: Any) -> Any:
            if self.expr.free_symbols and is_told(kind, self.expr, self.hint):
                return kind(1 if self.hint is None else self.hint)
            return plain(self, *args)

        return guard

    with ExitStack() as stack:
        stack.enter_context(_with_method(SymNode, "guard_float", reader(float, SymNode.guard_float)))
        stack.enter_context(_with_method(SymNode, "guard_int", reader(int, SymNode.guard_int)))
        yield


_ARITHMETIC = ("add", "sub", "mul", "float_truediv", "mod", "eq", "ne", "lt", "le", "gt", "ge")
"""What sympy may simplify so that the answer is another one for NaN or an infinity."""


@contextmanager
def watch_lost_values(note: Callable[[], None]) -> Iterator[None]:
    """While active, `note` is told where what is computed of a value in floating point no longer depends on it.

    sympy computes with real numbers, where ``v * 0`` is 0 and ``v != v`` never holds; a value may be NaN or infinite.
    """
    from torch.fx.experimental.sym_node import SymNode

    def watcher(plain: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, other: Any) -> Any:
            made = plain(self, other)
            before = _values_in(self) | _values_in(other)
            if before and not before <= _values_in(made):
                note()
            return made

        return method

    def answers(plain: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            answer = plain(self, *args)
            values = _values_in(self)
            if values and values.isdisjoint(self.shape_env.deferred_runtime_asserts):  # else the model has checked it
                note()
            return answer

        return method

    with ExitStack() as stack:
        for name in _ARITHMETIC:
            stack.enter_context(_with_method(SymNode, f"_{name}", watcher(getattr(SymNode, f"_{name}"))))
        stack.enter_context(_with_method(SymNode, "guard_bool", answers(SymNode.guard_bool)))
        yield


def _values_in(node: Any) -> set[Any]:
    """The symbols of a number's expression that stand for values in floating point."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    symbols = getattr(getattr(node, "expr", None), "free_symbols", ())
    return {symbol for symbol in symbols if symbol_is_type(symbol, SymT.UNBACKED_FLOAT)}
