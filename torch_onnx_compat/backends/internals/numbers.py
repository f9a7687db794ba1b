"""What Python's whole numbers can do, for torch's symbolic sizes: divmod, and operations on bits as arithmetic.

torch has an opaque function for each operation on bits, which its exporter does not translate and which no question
about a size looks into. Quotients and remainders say the same of every whole number, the negative ones too: Python's
round down, and a negative number counts as one with ones before it without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

DIVMOD: dict[str, Callable[[Any, Any], Any]] = {
    "__divmod__": lambda number, other: (number // other, number % other),
    "__rdivmod__": lambda number, other: (other // number, other % number),
}
"""The methods of Python's numbers that divmod calls; torch's symbolic numbers and tensors lack them."""

_WHOLE = (int, torch.SymInt)


@contextmanager
def complete_numbers() -> Iterator[None]:
    """While active, torch's symbolic numbers take divmod, and a size takes what whole numbers do with bits.

    A member of an IntEnum, and any other number of a class of its own, is a number to them, too: to torch a size is
    equal to none of these, and nobody hears of the question.
    """
    from torch.fx.experimental import sym_node  # imports sympy

    methods_of: dict[Any, dict[str, Callable[[Any], Any]]] = {**_METHODS, sym_node: {"to_node": _of_subclasses}}
    before = [(kind, name, vars(kind).get(name)) for kind, methods in methods_of.items() for name in methods]
    try:
        for kind, name, old in before:
            setattr(kind, name, methods_of[kind][name](old))
        yield
    finally:
        for kind, name, old in before:
            if old is not None:
                setattr(kind, name, old)
            elif name in vars(kind):
                delattr(kind, name)


@contextmanager
def unchecked_powers() -> Iterator[None]:
    """While active, nobody asks whether a symbolic number is negative before it is raised to a power.

    To Python, such a power is complex unless the exponent is whole, and torch ends the capture. But the number may be
    negative at the example, and the branch that computes the power one that the example does not take: there 0 stands
    for the number.
    """
    kind: Any = torch.SymFloat
    before = {name: vars(kind).get(name) for name in ("__pow__", "__rpow__")}
    if not hasattr(kind, "__float_pow__"):
        yield
        return

    def unchecked(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def method(number: Any, other: Any) -> Any:
            if not isinstance(other, (int, float, torch.SymInt, torch.SymFloat)):
                return NotImplemented
            return compute(number, other)

        return method

    try:
        kind.__pow__ = unchecked(lambda number, other: _base_of(number, other).__float_pow__(other))
        kind.__rpow__ = unchecked(lambda number, other: number.__rfloat_pow__(_base_of(other, number)))
        yield
    finally:
        for name, method in before.items():
            setattr(kind, name, method)


def _base_of(number: Any, exponent: Any) -> Any:
    """The base of a power, 0 where the power is complex; a whole exponent makes none of a negative number."""
    is_whole = isinstance(exponent, _WHOLE) or (isinstance(exponent, float) and exponent.is_integer())
    now: Any = number.node.hint if isinstance(number, (torch.SymInt, torch.SymFloat)) else 0
    return number if is_whole or now is None or now >= 0 else torch.sym_max(number, 0.0)


def _of_subclasses(torchs: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Torch's function that takes a plain number for what a symbolic one is computed with."""

    def to_node(node: Any, number: Any) -> Any:
        kind = next((one for one in (int, float) if isinstance(number, one)), None)
        if kind is None or type(number) in (bool, kind):
            return torchs(node, number)
        return torchs(node, kind(number))

    return to_node


def _unless_torchs(method: Callable[..., Any]) -> Callable[[Any], Any]:
    """A method that torch's own one makes superfluous."""
    return lambda torchs: torchs or method


def _of_bits(compute: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A method of a size that computes with whole numbers; what else it is given goes to torch's own."""

    def replace(torchs: Any) -> Any:
        def method(number: Any, other: Any) -> Any:
            if isinstance(other, _WHOLE):
                return compute(number, other)
            return NotImplemented if torchs is None else torchs(number, other)

        return method

    return replace


def _and_of(torchs: Any) -> Any:
    """``number & other``: the bits of a constant, one run of ones after the other."""

    def method(number: Any, other: Any) -> Any:
        if isinstance(other, int):
            return _and_constant(number, int(other))
        return NotImplemented if torchs is None else torchs(number, other)

    return method


def _and_constant(number: Any, mask: int) -> Any:
    if mask < 0:
        return number - _and_constant(number, ~mask)
    result, low = 0, 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        ones = (~(mask >> low) & (mask >> low) + 1).bit_length() - 1
        result = result + (number // 2**low) % 2**ones * 2**low
        low += ones
    return result


def _left(number: Any, count: Any) -> Any:
    return number * 2 ** _natural(count)


def _right(number: Any, count: Any) -> Any:
    # 2**63 is no whole number of a file any more, and a shift by 62 leaves nothing but the sign.
    return number // 2 ** torch.sym_min(_natural(count), 62)


def _natural(count: Any) -> Any:
    if count < 0:
        raise ValueError("negative shift count")
    return count


_METHODS: dict[Any, dict[str, Callable[[Any], Any]]] = {
    torch.SymInt: {
        "__and__": _and_of,
        "__rand__": _and_of,
        "__or__": _of_bits(lambda a, b: a + b - (a & b)),
        "__ror__": _of_bits(lambda a, b: a + b - (a & b)),
        "__xor__": _of_bits(lambda a, b: a + b - 2 * (a & b)),
        "__rxor__": _of_bits(lambda a, b: a + b - 2 * (a & b)),
        "__lshift__": _of_bits(_left),
        "__rlshift__": _of_bits(lambda count, number: _left(number, count)),
        "__rshift__": _of_bits(_right),
        "__rrshift__": _of_bits(lambda count, number: _right(number, count)),
        "__invert__": lambda torchs: lambda number: -number - 1,
        **{name: _unless_torchs(method) for name, method in DIVMOD.items()},
    },
    torch.SymFloat: {name: _unless_torchs(method) for name, method in DIVMOD.items()},
}
"""By kind and name: torch's own method, or None, to the one that stands in for it."""
