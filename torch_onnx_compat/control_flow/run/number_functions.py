"""Stand-ins for Python's and NumPy's functions of numbers: int, round, math.sqrt, np.ceil, math.isclose ..."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.backends.wide import in_double
from torch_onnx_compat.control_flow.run.exact import promoted
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS
from torch_onnx_compat.control_flow.run.session import Session, as_tensor
from torch_onnx_compat.functional.decimals import TorchArithmetic, round_decimal
from torch_onnx_compat.tracing import is_tracing


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


def product(session: Session, function: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """``np.prod(x.shape[1:])``."""
    is_of_sizes = isinstance(values, (list, tuple)) and any(session.varies(value) for value in values)
    if args or kwargs or not is_of_sizes or None in map(session.kind_of_number, values):
        return function(values, *args, **kwargs)
    return functools.reduce(operator.mul, values)


def of_two_numbers(stand_in: Callable[..., Any]) -> Callable[..., Any]:
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


STAND_INS: dict[Any, Callable[..., Any]] = {
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
    math.prod: product,
    **{getattr(np, name): _of_numpy(_real_function(getattr(torch, name))) for name in ("sqrt", "log", "exp")},
    np.log2: _of_numpy(_real_function(_logarithm(2.0, torch.log2))),
    np.ceil: _of_numpy(_real_function(torch.ceil), math.ceil),
    np.floor: _of_numpy(_real_function(torch.floor), math.floor),
    np.trunc: _of_numpy(_real_function(torch.trunc), math.trunc),
    **dict.fromkeys((np.round, np.around, np.rint), _of_numpy(_real_function(torch.round), round)),
    np.prod: product,
    builtins.divmod: _divmod,
    math.isclose: _isclose,
    **{getattr(math, name): _of_one_number(getattr(torch, name)) for name in ("isnan", "isinf", "isfinite")},
}
"""By function; each takes the session, the function, and its arguments."""
