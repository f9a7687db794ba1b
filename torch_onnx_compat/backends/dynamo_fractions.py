"""Fractions of sizes under torch's dynamo exporter: in float64, as Python has them, where they become whole numbers.

torch translates ``int(x.shape[0] * 0.7)`` in float32, in which 0.7 * 90 is 63, and not a little less. Here each such
operation is one of float64, for what becomes a size, a decision or a tensor of float64; arithmetic on other tensors
gets it rounded once, as torch rounds Python's numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.backends.dynamo_ops import DynamoOps
from torch_onnx_compat.functional.decimals import round_decimal
from torch_onnx_compat.ops import ONNX_TYPES

_WIDE = "torch_onnx_compat.wide"
"""Where a value of the graph has the same in float64."""

_FRACTIONS: dict[Any, Callable[..., Any]] = {
    torch.sym_float: lambda op, a: a,
    operator.add: lambda op, a, b: op.Add(a, b),
    operator.sub: lambda op, a, b: op.Sub(a, b),
    operator.mul: lambda op, a, b: op.Mul(a, b),
    operator.truediv: lambda op, a, b: op.Div(a, b),
    operator.pow: lambda op, a, b: op.Pow(a, b),
    operator.neg: lambda op, a: op.Neg(a),
    operator.mod: lambda op, a, b: op.Sub(a, op.Mul(op.Floor(op.Div(a, b)), b)),
    operator.floordiv: lambda op, a, b: op.Floor(op.Div(a, b)),
}
"""What Python computes with fractions, in float64."""

_MAKES_FRACTIONS = (torch.sym_float, operator.truediv)

_WHOLE: dict[Any, Callable[..., Any]] = {
    math.floor: lambda op, a: op.Floor(a),
    math.ceil: lambda op, a: op.Ceil(a),
    math.trunc: lambda op, a: a,
    round: lambda op, a: op.Round(a),
}
"""What makes whole numbers of fractions; the result is cast."""

_TRUTHS: dict[Any, Callable[..., Any]] = {
    operator.lt: lambda op, a, b: op.Less(a, b),
    operator.le: lambda op, a, b: op.LessOrEqual(a, b),
    operator.gt: lambda op, a, b: op.Greater(a, b),
    operator.ge: lambda op, a, b: op.GreaterOrEqual(a, b),
    operator.eq: lambda op, a, b: op.Equal(a, b),
    operator.ne: lambda op, a, b: op.Not(op.Equal(a, b)),
}
"""What compares fractions."""


_FILLING = {
    torch.ops.aten.full.default: "fill_value",
    torch.ops.aten.full_like.default: "fill_value",
    torch.ops.aten.fill.Scalar: "value",
    torch.ops.aten.scalar_tensor.default: "s",
}
"""Operators that make tensors of numbers, by the argument that is the number."""

_OF_DEFAULT_TYPE = (torch.ops.aten.full.default, torch.ops.aten.scalar_tensor.default)
"""Those that make torch's default element type where none is given."""


def with_fractions(table: Mapping[Any, Callable[..., Any]], opset: int) -> dict[Any, Callable[..., Any]]:
    """Translations, with those of Python's arithmetic on sizes and of the operators that make tensors of numbers.

    Args:
        table: Translations by function, which stay in force for other arguments.
        opset: Opset of the export.
    """
    op = DynamoOps(opset)
    arithmetic = {f: _translation(op, f, table.get(f)) for f in (*_FRACTIONS, *_WHOLE, *_TRUTHS)}
    filling = {overload: _filling(overload, table.get(overload)) for overload in _FILLING}
    return {**table, **arithmetic, **filling}


def _translation(op: DynamoOps, function: Any, of_whole: Callable[..., Any] | None) -> Callable[..., Any]:
    """The translation of one of Python's operations; of whole numbers it is the given one, or torch's.

    A function without default arguments: torch reads a signature from what it is given.
    """

    def lower(*args: Any) -> Any:
        args = args if args[-1] is not None else args[:-1]  # round(x, None)
        if not any(map(_is_fraction, args)) and function not in _MAKES_FRACTIONS:
            return (of_whole or _torchs_own(function))(*args)
        if function is round and len(args) == 2:
            return _with_wide(op, round_decimal(op, _in_float64(op, args[0]), args[1]))
        wide = [_in_float64(op, arg) for arg in args]
        if function in _TRUTHS:
            return _TRUTHS[function](op, *wide)
        if function in _WHOLE:
            return op.Cast(_WHOLE[function](op, *wide), to=ONNX_TYPES[torch.int64])
        return _with_wide(op, _FRACTIONS[function](op, *wide))

    return lower


def _with_wide(op: DynamoOps, wide: Any) -> Any:
    """A fraction in float32 that knows itself in float64."""
    narrow = op.Cast(wide, to=ONNX_TYPES[torch.float32])
    narrow.meta[_WIDE] = wide
    return narrow


def _torchs_own(function: Any) -> Callable[..., Any]:
    found = internals.torchlib_function(function)
    if found is None:
        raise ExportFailed(f"dynamo exporter: torch translates no {function.__name__} of sizes.")
    return found


def _filling(overload: Any, translation: Callable[..., Any] | None) -> Callable[..., Any]:
    """The translation, torch's if None, of an operator that makes a tensor of a number: it casts the number."""
    place = [argument.name for argument in overload._schema.arguments].index(_FILLING[overload])

    def lower(*args: Any, **kwargs: Any) -> Any:
        translate = translation or _torchs_own(overload)
        wide = _wide(args[place]) if len(args) > place else None
        if wide is None:
            return translate(*args, **kwargs)
        if overload in _OF_DEFAULT_TYPE and kwargs.get("dtype") is None:
            kwargs["dtype"] = ONNX_TYPES[torch.get_default_dtype()]
        return translate(*args[:place], wide, *args[place + 1 :], **kwargs)

    return lower


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) or _wide(value) is not None


def _wide(value: Any) -> Any:
    return getattr(value, "meta", {}).get(_WIDE)


def _in_float64(op: DynamoOps, value: Any) -> Any:
    """A size, a fraction or a number in float64."""
    if isinstance(value, (bool, int, float)):
        return op.constant(float(value), torch.float64)
    wide = _wide(value)
    return op.Cast(value, to=ONNX_TYPES[torch.float64]) if wide is None else wide
