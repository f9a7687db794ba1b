"""Stand-ins for the functions that turn tensors into Python numbers."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.backends.checks import ASSERTIONS
from torch_onnx_compat.backends.internals import pythons_own
from torch_onnx_compat.backends.wide import in_double
from torch_onnx_compat.control_flow.run import factories, iterables, number_functions
from torch_onnx_compat.control_flow.run.aliases import may_be_one
from torch_onnx_compat.control_flow.run.branch import Branch
from torch_onnx_compat.control_flow.run.decide import decide
from torch_onnx_compat.control_flow.run.exact import promoted
from torch_onnx_compat.control_flow.run.lifting import note_made
from torch_onnx_compat.control_flow.run.lists import AppendLog, Rows
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS, is_number
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.runtime_loops import collect
from torch_onnx_compat.control_flow.run.session import Session, as_tensor, current
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import extreme_of_sizes, is_tracing


def callee(function: Any) -> Any:
    """The stand-in for a function, if it has one: it keeps numbers that may vary as tensors or symbols."""
    session = current()
    if session is None:
        return function
    method = getattr(function, "__self__", None)
    if isinstance(method, Tensor):
        stand_in = _METHODS.get(getattr(function, "__name__", ""))
        return functools.partial(stand_in, session, function, method) if stand_in else function
    if isinstance(method, torch.Size) and getattr(function, "__name__", "") == "numel":
        return functools.partial(number_functions.product, session, math.prod, method)
    if isinstance(function, torch.jit.ScriptFunction):
        return getattr(function, "_torchdynamo_inline", function)  # what was scripted, whose decisions are rewritten
    known = pythons_own(function)
    stand_in = _FUNCTIONS.get(known) if _is_hashable(known) else None
    if stand_in is None:
        return function
    return functools.partial(_note_number if known in _TO_NUMBERS else stand_in, session, function)


def _note_number(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a function that yields a number, noted as one."""
    result = _FUNCTIONS[function](session, function, *args, **kwargs)
    if isinstance(result, Tensor) and any(result is value for value in args):
        result = result.clone()  # the tensor itself stays a tensor
    return session.note_number(result)


def _is_hashable(function: Any) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


# Methods of tensors


def _item(session: Session, function: Any, tensor: Tensor) -> Any:
    if not session.varies(tensor):
        return function()
    if not is_tracing() and not tensor.is_floating_point():
        return function()  # torch.export has symbols for integers, and these may be used as sizes
    number = promoted(tensor.reshape(()))
    session.note_number(number)
    return number


def _tolist(session: Session, function: Any, tensor: Tensor) -> Any:
    if not session.varies(tensor):
        return function()
    if tensor.dim() == 0:
        return _item(session, tensor.item, tensor)
    rows = iterables.as_counted_items(session, tensor)

    def listed(row: Tensor) -> Any:
        return _tolist(session, row.tolist, row)

    return list(map(listed, tensor)) if rows is None else replace(rows, read=lambda place: listed(tensor[place]))


_METHODS: dict[str, Callable[..., Any]] = {"item": _item, "tolist": _tolist, **iterables.METHODS, **factories.METHODS}


# Functions and methods that take sizes: a size that was computed in floating point is made an integer


def _pad(session: Session, function: Any, x: Tensor, pad: Any, *args: Any, **kwargs: Any) -> Any:
    return function(x, factories.to_integers(session, pad), *args, **kwargs)


def _size_method(session: Session, function: Any, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    return function(*(factories.to_integers(session, arg) for arg in args), **kwargs)


_METHODS.update(dict.fromkeys(("view", "reshape", "expand", "repeat"), _size_method))


def _attention(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
    """``is_causal`` may be a condition: ``is_causal=x.shape[1] > 1``."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    is_causal = given.pop("is_causal", False)
    if not isinstance(is_causal, (Tensor, *SYMBOLS)):
        return function(*args, **kwargs)
    causal, other = Branch(lambda: function(**given, is_causal=True)), Branch(lambda: function(**given))
    return decide(session, is_causal, causal, other)


def _from_numpy(session: Session, function: Any, array: Any) -> Tensor:
    made: Tensor = function(array)
    note_made([made])  # no mode sees the call
    return made


def _len(session: Session, function: Any, value: Any) -> Any:
    if isinstance(value, (AppendLog, Rows)):
        return value.count_items()
    if isinstance(value, iterables.CountedItems):
        return value.length
    return value.shape[0] if isinstance(value, (Tensor, Pair)) and value.dim() else function(value)


def _isinstance(session: Session, function: Any, value: Any, kind: Any) -> bool:
    if isinstance(value, iterables.CountedItems):
        return isinstance(value.kind(), kind)
    answers = {isinstance(number(), kind) for number in session.unknown_kinds.kinds(value)}
    if len(answers) == 1:
        return answers.pop()
    session.ask_kind(value)
    number = session.number_type(value)
    return bool(function(value, kind)) if number is None else isinstance(number(), kind)


def _type(session: Session, function: Any, value: Any) -> Any:
    if isinstance(value, iterables.CountedItems):
        return value.kind
    session.ask_kind(value)
    return session.number_type(value) or function(value)


def _is_tensor(session: Session, function: Any, value: Any) -> bool:
    if session.unknown_kinds.kinds(value):
        return False
    session.ask_kind(value)
    return session.number_type(value) is None and function(value)


def _hasattr(session: Session, function: Any, value: Any, name: Any) -> Any:
    session.ask_kind(value)
    kind = session.number_type(value)
    return function(value if kind is None else kind(), name)


_SINGLE = range(-5, 257)
"""The integers that Python has once each; it makes every other number anew."""


def is_same(session: Session | None, left: Any, right: Any) -> Any:
    """``left is right``, of which either may stand for a number.

    Raises:
        RefusedDecision: Both are numbers of which Python has several with one value.
    """
    sides = (left, right)
    if session is not None and (session.choices.is_one_of(left, right) or may_be_one(left, right)):
        raise refusal("`is` of two things of which a decision that depends on the inputs has chosen one.")
    made = [None if session is None or type(v) in (bool, int, float) else session.kind_of_number(v) for v in sides]
    if left is right or made == [None, None]:
        return left is right
    kinds = [of_tensor or type(side) for of_tensor, side in zip(made, sides, strict=True)]
    if kinds[0] is not kinds[1]:
        return False
    constants = [side for of_tensor, side in zip(made, sides, strict=True) if of_tensor is None]
    if kinds[0] is bool or (kinds[0] is int and constants and constants[0] in _SINGLE):
        return torch.eq(as_tensor(left), as_tensor(right))
    raise refusal("`is` of a number that values decide; compare it with ==.")


def _is_same(session: Session, function: Any, left: Any, right: Any) -> Any:
    return is_same(session, left, right)


def _is_not_same(session: Session, function: Any, left: Any, right: Any) -> Any:
    same = is_same(session, left, right)
    return torch.logical_not(same) if isinstance(same, Tensor) else not same


# Functions of several


def _extreme(largest: bool) -> Callable[..., Any]:
    def stand_in(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
        values: Sequence[Any] = args
        if len(args) == 1 and isinstance(args[0], Iterable):
            if _is_counted(session, args[0]) and not kwargs:
                return (torch.amax if largest else torch.amin)(_rows_of(session, args[0]), 0)
            values = list(args[0])
            args = args if isinstance(args[0], Tensor) else (values,)  # an iterator is read once
        numbers = all(isinstance(v, Tensor) or is_number(v) for v in values)
        has_key = kwargs.keys() - {"default"}  # the default is that of nothing at all
        if has_key or not values or not numbers or not any(session.varies(v) for v in values):
            return function(*args, **kwargs)
        if not any(isinstance(v, Tensor) for v in values):
            return functools.reduce(functools.partial(extreme_of_sizes, largest), values)
        result = functools.reduce(functools.partial(_extreme_of_two, largest), values)
        exact = [session.exact(v) if isinstance(v, Tensor) else v for v in values]
        if all(number is not None for number in exact):
            result = session.note_number(result, _wide_extreme(largest, exact) if session.computes_wide else None)
        session.note_several_kinds(result, values, "the largest or smallest of several, which are not of one type")
        return result

    return stand_in


def _wide_extreme(largest: bool, numbers: Iterable[Any]) -> Tensor | None:
    """The largest or smallest of numbers in float64; None if they are whole."""
    if all(not n.is_floating_point() if isinstance(n, Tensor) else isinstance(n, (int, torch.SymInt)) for n in numbers):
        return None
    wide = map(in_double, numbers)
    return functools.reduce(torch.maximum if largest else torch.minimum, wide)


def _extreme_of_two(largest: bool, a: Any, b: Any) -> Tensor:
    like = a if isinstance(a, Tensor) else b
    x, y = as_tensor(a, like), as_tensor(b, like)
    dtype = torch.promote_types(x.dtype, y.dtype)
    return (torch.maximum if largest else torch.minimum)(x.to(dtype), y.to(dtype))


def _is_counted(session: Session, items: Any) -> bool:
    """Whether the length of an iterable depends on the inputs."""
    return isinstance(items, Rows) or iterables.as_counted_items(session, items) is not None


def _rows_of(session: Session, items: Any) -> Tensor:
    """Such items, stacked."""
    if isinstance(items, (Tensor, Rows)):
        return items.stacked() if isinstance(items, Rows) else items
    counted = iterables.as_counted_items(session, items)
    assert counted is not None
    return counted.rows().stacked()


def _sum(session: Session, function: Any, items: Any, start: Any = 0) -> Any:
    if not _is_counted(session, items):
        return function(items, start)
    whole = _rows_of(session, items)
    kind = torch.int64 if whole.dtype == torch.bool else whole.dtype  # as of one sum after the other
    total = whole.sum(0, dtype=kind)
    return total if isinstance(start, int) and start == 0 else start + total


def _map(session: Session, function: Any, changed: Any, *items: Any) -> Any:
    if len(items) == 1 and _is_counted(session, items[0]):
        return collect(items[0], changed)
    return function(changed, *items)


def _quantifier(decisive: bool) -> Callable[..., Any]:
    def stand_in(session: Session, function: Any, values: Iterable[Any]) -> Any:
        result: Any = not decisive
        if _is_counted(session, values):
            return (torch.any if decisive else torch.all)(_rows_of(session, values) != 0)
        for value in values:
            known = session.condition(result)
            if known is decisive:
                return known
            result = value if isinstance(known, bool) else _either(session, known, value, decisive)
        return session.condition(result)

    return stand_in


def _either(session: Session, known: Tensor, value: Any, decisive: bool) -> Any:
    other = session.condition(value)
    constant, computed = Branch(lambda: decisive), Branch(lambda: other)
    return decide(session, known, *((constant, computed) if decisive else (computed, constant)))


class _Failure(AssertionError, IndexError, NotImplementedError, TypeError, ValueError):
    """What torch's assertions raise, of any kind: whoever catches one of them goes on in another way."""


def _assertion(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
    """An assertion of torch's: what varies is not checked, as it is not by an assert."""
    given = [*args, *kwargs.values()]
    if not any(isinstance(value, Tensor) and session.varies(value) for value in given):
        return function(*args, **kwargs)
    kinds = (value for value in given if isinstance(value, type) and issubclass(value, Exception))
    kind = next(kinds, _Failure)
    return session.drop_check(kind.__new__(kind))


_ASSERTIONS = [
    value for name, value in vars(torch).items() if name.startswith(ASSERTIONS) and inspect.isfunction(value)
]


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **number_functions.STAND_INS,
    **dict.fromkeys(_ASSERTIONS, _assertion),
    np.maximum: number_functions.of_two_numbers(_extreme(True)),
    np.minimum: number_functions.of_two_numbers(_extreme(False)),
    builtins.isinstance: _isinstance,
    builtins.type: _type,
    torch.is_tensor: _is_tensor,
    builtins.hasattr: _hasattr,
    operator.is_: _is_same,
    operator.is_not: _is_not_same,
    builtins.len: _len,
    builtins.sum: _sum,
    builtins.map: _map,
    builtins.min: _extreme(False),
    builtins.max: _extreme(True),
    builtins.any: _quantifier(True),
    builtins.all: _quantifier(False),
    **factories.STAND_INS,
    functional.pad: _pad,
    functional.scaled_dot_product_attention: _attention,
    torch.from_numpy: _from_numpy,
    **iterables.STAND_INS,
}

_TO_NUMBERS = frozenset({int, float, bool, round, any, all, math.floor, math.ceil, math.trunc})
"""Functions that make a number of a tensor."""
