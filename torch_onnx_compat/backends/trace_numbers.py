"""Python's numbers in a TorchScript trace: sizes are tensors there, and lack what numbers have.

A size is a tensor of shape () in a trace, and so is what a model computes from it. These tensors get the methods that a
number has and a tensor has not, and a comparison that every size answers alike is no decision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.internals.number_kinds import (
    attribute_of_number,
    namespaces_of,
    reads_class,
    told_as_numbers,
)
from torch_onnx_compat.backends.internals.numbers import DIVMOD
from torch_onnx_compat.tracing import below_function_modes, constant, is_tracing, recorded_value
from torch_onnx_compat.watch import Watcher

_NAMES = (
    "add sub mul div floor_divide remainder pow neg abs floor ceil round trunc rsub minimum maximum min max clamp",
    "where to eq ne lt le gt ge bitwise_and bitwise_or bitwise_left_shift bitwise_right_shift",
)
_ARITHMETIC = frozenset(f"aten::{name}" for names in _NAMES for name in names.split())
"""Operators of a trace that compute a number from numbers."""


def is_number(x: Any) -> bool:
    """Whether a traced tensor is a size, or computed from sizes: a number in eager torch, which nothing changes."""
    if not isinstance(x, Tensor) or not is_tracing():
        return False
    with below_function_modes():
        if x.dim():
            return False
    todo, seen, has_size, is_size = [recorded_value(x)], set(), False, _is_size.get()
    while todo:
        value = todo.pop()
        node = value.node()
        kind = node.kind()
        if kind == "prim::Constant" or value.unique() in seen:
            continue
        seen.add(value.unique())
        if is_size(value):
            has_size = True
        elif kind in _ARITHMETIC:
            todo += node.inputs()
        elif kind == "aten::reshape":  # of what was computed in float64, in which no number has shape ()
            todo += list(node.inputs())[:1]
        else:
            return False
    return has_size


_is_size: ContextVar[Callable[[Any], bool]] = ContextVar(
    "which values are sizes", default=lambda value: value.node().kind() == "prim::NumToTensor"
)


@contextmanager
def sizes_are(is_size: Callable[[Any], bool]) -> Iterator[None]:
    """While active, something else tells which values of a trace are sizes: those of a nested one are its inputs."""
    token = _is_size.set(is_size)
    try:
        yield
    finally:
        _is_size.reset(token)


def kind_of_number(x: Any) -> type | None:
    """What eager torch has in the place of a traced size, or of what is computed of sizes; None for anything else."""
    if not is_number(x):
        return None
    return bool if x.dtype == torch.bool else float if x.is_floating_point() else int


@contextmanager
def sizes_as_numbers(modules: Collection[str]) -> Iterator[None]:
    """While active, what a trace has for a size is a number for the model's code, whatever asks for its kind.

    Args:
        modules: The Python modules that the code is in.
    """
    scopes = frozenset(map(id, namespaces_of(modules)))

    def read(tensor: Tensor, name: str) -> Any:
        frame = sys._getframe(1)
        if name == "__class__" and reads_class(frame, scopes):
            return kind_of_number(tensor) or type(tensor)
        if name in _TENSORS_OWN and id(frame.f_globals) in scopes:
            kind = kind_of_number(tensor)
            if kind is not None and not hasattr(kind, name):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return internals.read_attribute(tensor, name)

    with told_as_numbers(modules, kind_of_number), internals.add_tensor_method("__getattribute__", read):
        yield


# Reading an attribute may be a call of torch.
Watcher.modules |= {__name__, internals.read_attribute.__module__}

_TENSORS_OWN = frozenset(name for name in dir(Tensor) if not name.startswith("__") and not hasattr(int, name))
"""Attributes of tensors that sizes lack in eager torch."""


def is_settled(tensor: Tensor) -> bool:
    """Whether a traced tensor compares a size, or a sum or product of sizes, with a number below all that it can be."""
    compared = list(recorded_value(tensor).node().inputs())
    if recorded_value(tensor).node().kind() not in _COMPARISONS or len(compared) != 2:
        return False
    number, least = _plain(compared[1]), _least(compared[0])
    if number is None or least is None:
        return False
    or_equal = recorded_value(tensor).node().kind() in ("aten::lt", "aten::ge")
    return number < least or (or_equal and number == least)


_COMPARISONS = frozenset(f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


def _plain(value: Any) -> int | float | None:
    """A constant of a trace as a number."""
    number = value.toIValue()
    if isinstance(number, Tensor) and not number.dim():
        number = number.item()
    return number if isinstance(number, (int, float)) else None


def _least(value: Any) -> int | float | None:
    """The least that a number of a trace can be; None if nothing is known."""
    node = value.node()
    kind, inputs = node.kind(), list(node.inputs())
    if kind in ("aten::size", "aten::numel"):
        return 0
    if kind == "prim::NumToTensor":
        return _least(inputs[0])
    if kind == "prim::Constant":
        return _plain(value)
    if kind in ("aten::add", "aten::mul"):
        parts = _least(inputs[0]), _least(inputs[1])
        if parts[0] is None or parts[1] is None:
            return None
        if kind == "aten::add" and len(inputs) > 2 and _plain(inputs[2]) == 1:
            return parts[0] + parts[1]
        return parts[0] * parts[1] if kind == "aten::mul" and min(parts[0], parts[1]) >= 0 else None
    return None


def _is_integer(number: Tensor) -> Tensor:
    """``number.is_integer()``, as a condition."""
    return number == number.floor() if number.is_floating_point() else torch.ones_like(number, dtype=torch.bool)


def _bit_length(number: Tensor) -> Tensor:
    """``number.bit_length()``: how many powers of two are no larger."""
    powers = constant([2**exponent for exponent in range(63)], like=number)
    return (number.abs().reshape(1) >= powers).sum()


_COMPUTED: dict[str, Callable[..., Any]] = {"is_integer": _is_integer, "bit_length": _bit_length, **DIVMOD}


def _attribute(name: str) -> property:
    """An attribute of Python's numbers, for the tensors that are sizes; others lack it in eager torch, too."""

    def read(tensor: Tensor) -> Any:
        if not is_number(tensor):
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        return attribute_of_number(tensor, name)

    return property(read)


METHODS: dict[str, Any] = _COMPUTED | {
    name: _attribute(name)
    for name in dir(int)
    if not name.startswith("_") and name not in _COMPUTED and not hasattr(Tensor, name)
}
"""Methods and attributes of Python's whole numbers that tensors lack."""
