"""Stand-ins for the functions that turn tensors into Python numbers."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.backends.internals import pythons_own
from torch_onnx_compat.backends.wide import in_double
from torch_onnx_compat.control_flow.run import factories, iterables
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
from torch_onnx_compat.functional.decimals import TorchArithmetic, round_decimal
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
        return functools.partial(_product, session, math.prod, method)
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


# Functions of one number


def _int(session: Session, function: Any, *args: Any) -> Any:
    value = args[0] if len(args) == 1 else None
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return math.trunc(value) if isinstance(value, torch.SymFloat) else torch.sym_ite(value, 1, 0)
    if not isinstance(value, Tensor) or not session.varies(value):
        return function(*args)
    whole = _exact(session, value).to(torch.int64).reshape(())
    return whole if is_tracing() else whole.item()


def _float(session: Session, function: Any, *args: Any) -> Any:
    value = args[0] if len(args) == 1 else None
    if isinstance(value, SYMBOLS):
        return torch.sym_float(value)
    if not isinstance(value, Tensor) or not session.varies(value):
        return function(*args)
    number = promoted(value.reshape(()))
    return number if number.is_floating_point() else number.to(torch.get_default_dtype())


def _exact(session: Session, value: Tensor) -> Tensor:
    """A number as Python computes it, of one element."""
    found = session.exact(value)
    return found if found is not None else value.reshape(())


def _bool(session: Session, function: Any, *args: Any) -> Any:
    return session.condition(args[0]) if len(args) == 1 else function(*args)


def _round_by(to: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def stand_in(session: Session, function: Any, value: Any, *digits: Any) -> Any:
        if isinstance(value, torch.SymInt) and not digits:
            return value
        if not isinstance(value, Tensor) or not session.varies(value):
            return function(value, *digits)
        if digits and digits[0] is not None:
            rounded = torch.round(promoted(value.reshape(())), decimals=digits[0])
            if rounded.is_floating_point() and session.computes_wide:
                wide = round_decimal(TorchArithmetic, in_double(_exact(session, value)), digits[0])
                return session.note_number(rounded, wide)
            return rounded
        number = _exact(session, value)
        return (to(number).to(torch.int64) if number.is_floating_point() else number).reshape(())

    return stand_in


def _real_function(of_tensor: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """The stand-in for a function of one real number."""

    def stand_in(session: Session, function: Any, value: Any, *args: Any) -> Any:
        if not args and isinstance(value, SYMBOLS):
            return of_tensor(as_tensor(value).to(torch.get_default_dtype()))
        if not args and isinstance(value, Tensor) and session.varies(value):
            result = of_tensor(_float(session, float, value))
            wide = of_tensor(in_double(_exact(session, value))) if session.computes_wide else None
            return session.note_number(result, wide)
        return function(value, *args)

    return stand_in


def _of_numpy(stand_in: Callable[..., Any], of_symbol: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """The stand-in for a function of NumPy, where it is given one number: ``np.ceil(height / 7)``.

    Args:
        stand_in: For a number.
        of_symbol: Rounds a symbolic number, if that can stay one.
    """

    def of_number(session: Session, function: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        kind = None if isinstance(value, (bool, int, float)) else session.kind_of_number(value)
        if args or kwargs or kind is None:
            return function(value, *args, **kwargs)
        if kind is int and isinstance(function(1), np.integer):  # NumPy 2.1 and later round whole numbers to such
            return value
        if of_symbol is not None and isinstance(value, SYMBOLS):
            return torch.sym_float(of_symbol(value))
        return stand_in(session, function, value)

    return of_number


def _product(session: Session, function: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """``np.prod(x.shape[1:])``."""
    is_of_sizes = isinstance(values, (list, tuple)) and any(session.varies(value) for value in values)
    if args or kwargs or not is_of_sizes or None in map(session.kind_of_number, values):
        return function(values, *args, **kwargs)
    return functools.reduce(operator.mul, values)


def _of_two(stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """The stand-in for a function of NumPy, where it is given two numbers: ``np.maximum(height, width)``."""

    def of_numbers(session: Session, function: Any, *args: Any, **kwargs: Any) -> Any:
        are_numbers = len(args) == 2 and not kwargs and None not in map(session.kind_of_number, args)
        return stand_in(session, function, *args) if are_numbers else function(*args, **kwargs)

    return of_numbers


def _logarithm(base: float, of_tensor: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Exact for powers of the base, as Python's; ONNX has the natural logarithm only."""

    def logarithm(x: Tensor) -> Tensor:
        found = of_tensor(x)
        whole = torch.round(found)
        return torch.where(torch.pow(base, whole) == x, whole, found)

    return logarithm


def _real_function_of_two(of_tensors: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    """The stand-in for a function of two real numbers."""

    def stand_in(session: Session, function: Any, *args: Any) -> Any:
        if len(args) != 2 or not any(map(session.varies, args)) or None in map(session.kind_of_number, args):
            return function(*args)
        wide = [in_double(_exact(session, v) if isinstance(v, Tensor) else v).reshape(()) for v in args]
        result = of_tensors(*wide)
        narrow = result.to(torch.get_default_dtype())
        return session.note_number(narrow, result.reshape(1) if session.computes_wide else None)

    return stand_in


def _of_whole_numbers(of_tensors: Callable[..., Tensor]) -> Callable[..., Any]:
    """The stand-in for a function of whole numbers that gives one."""

    def stand_in(session: Session, function: Any, *args: Any) -> Any:
        if not any(map(session.varies, args)) or not all(session.kind_of_number(v) in (int, bool) for v in args):
            return function(*args)
        whole = of_tensors(*(as_tensor(value).to(torch.int64).reshape(()) for value in args))
        return session.note_number(whole) if is_tracing() else whole.item()

    return stand_in


def _integer_root(number: Tensor) -> Tensor:
    """The largest whole number whose square is not above another one; a root in floating point may be one off."""
    root = torch.sqrt(number.to(torch.float64)).to(torch.int64)
    root = root - (root * root > number).to(torch.int64)
    return root + ((root + 1) * (root + 1) <= number).to(torch.int64)


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


def _divmod(session: Session, function: Any, a: Any, b: Any) -> Any:
    return (a // b, a % b) if any(isinstance(side, (Tensor, *SYMBOLS)) for side in (a, b)) else function(a, b)


def _isclose(session: Session, function: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """Python's: ``abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)``, and equal infinities are close."""
    if not any(session.varies(side) for side in (a, b)):
        return function(a, b, **kwargs)
    sides = (_exact(session, side) if isinstance(side, Tensor) else side for side in (a, b))
    one, other = map(in_double if session.computes_wide else as_tensor, sides)
    most = torch.maximum(one.abs(), other.abs()) * kwargs.get("rel_tol", 1e-9)
    near = ((one - other).abs() <= most) | ((one - other).abs() <= kwargs.get("abs_tol", 0.0))
    return ((near & (most.abs() != math.inf)) | (one == other)).reshape(())


def _of_one_number(test: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A question about a number, as a boolean tensor of shape ()."""

    def stand_in(session: Session, function: Any, number: Any) -> Any:
        return test(as_tensor(number)).reshape(()) if session.varies(number) else function(number)

    return stand_in


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


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.round: _round_by(torch.round),
    math.floor: _round_by(torch.floor),
    math.ceil: _round_by(torch.ceil),
    math.trunc: _round_by(torch.trunc),
    **{
        getattr(math, name): _real_function(getattr(torch, name))
        for name in ("sqrt", "log", "exp", "sin", "cos", "tanh")
    },
    math.log2: _real_function(_logarithm(2.0, torch.log2)),
    math.log10: _real_function(_logarithm(10.0, torch.log10)),
    math.fabs: _real_function(torch.abs),
    math.pow: _real_function_of_two(torch.pow),
    math.fmod: _real_function_of_two(torch.fmod),
    math.hypot: _real_function_of_two(lambda a, b: torch.sqrt(a * a + b * b)),
    math.copysign: _real_function_of_two(lambda a, b: torch.where(b < 0, -a.abs(), a.abs())),
    math.isqrt: _of_whole_numbers(_integer_root),
    math.prod: _product,
    **{getattr(np, name): _of_numpy(_real_function(getattr(torch, name))) for name in ("sqrt", "log", "exp")},
    np.log2: _of_numpy(_real_function(_logarithm(2.0, torch.log2))),
    np.ceil: _of_numpy(_real_function(torch.ceil), math.ceil),
    np.floor: _of_numpy(_real_function(torch.floor), math.floor),
    np.trunc: _of_numpy(_real_function(torch.trunc), math.trunc),
    **dict.fromkeys((np.round, np.around, np.rint), _of_numpy(_real_function(torch.round), round)),
    np.prod: _product,
    np.maximum: _of_two(_extreme(True)),
    np.minimum: _of_two(_extreme(False)),
    builtins.isinstance: _isinstance,
    builtins.type: _type,
    torch.is_tensor: _is_tensor,
    builtins.hasattr: _hasattr,
    operator.is_: _is_same,
    operator.is_not: _is_not_same,
    builtins.len: _len,
    builtins.sum: _sum,
    builtins.map: _map,
    builtins.divmod: _divmod,
    math.isclose: _isclose,
    **{getattr(math, name): _of_one_number(getattr(torch, name)) for name in ("isnan", "isinf", "isfinite")},
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
