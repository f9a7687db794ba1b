"""Fractions of sizes under torch's dynamo exporter: in float64, as Python has them, where they become whole numbers.

torch translates ``int(x.shape[0] * 0.7)`` in float32, in which 0.7 * 90 is 63, and not a little less. Each such
operation is translated twice: in float32 for arithmetic on tensors, and in float64 for what becomes a size or a
decision. What nobody uses is not written.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.backends.dynamo_ops import DynamoOps
from torch_onnx_compat.ops import ONNX_TYPES

_TWIN = "torch_onnx_compat.double"
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


def fraction_table(opset: int) -> dict[Any, Callable[..., Any]]:
    """Translations of Python's arithmetic on sizes, by function.

    Args:
        opset: Opset of the export.
    """
    op = DynamoOps(opset)
    table = {function: _translation(op, function) for function in (*_FRACTIONS, *_WHOLE, *_TRUTHS)}
    table[torch.ops.aten.full.default] = _full(op)
    return table


def _translation(op: DynamoOps, function: Any) -> Callable[..., Any]:
    """A function without default arguments: torch reads a signature from what it is given."""

    def lower(*args: Any) -> Any:
        args = args if args[-1] is not None else args[:-1]  # round(x, None)
        if not any(map(_is_fraction, args)) and function not in _MAKES_FRACTIONS:
            return _torchs_own(function)(*args)
        if function is round and len(args) == 2:
            return _rounded(op, *args)
        doubles = [_double(op, arg) for arg in args]
        if function in _TRUTHS:
            return _TRUTHS[function](op, *doubles)
        if function in _WHOLE:
            return op.Cast(_WHOLE[function](op, *doubles), to=ONNX_TYPES[torch.int64])
        double = _FRACTIONS[function](op, *doubles)
        is_of_whole = function in (operator.mod, operator.floordiv)  # torch's own takes whole numbers only
        return _with_twin(_in_single(op, double) if is_of_whole else _torchs_own(function)(*args), double)

    return lower


def _rounded(op: DynamoOps, value: Any, digits: int) -> Any:
    """``round(value, digits)``: the float64 nearest to the decimal number."""
    scale = op.constant(10.0 ** abs(digits), torch.float64)
    double = _double(op, value)
    there, back = (op.Mul, op.Div) if digits > 0 else (op.Div, op.Mul)
    double = back(op.Round(there(double, scale)), scale)
    return _with_twin(_in_single(op, double), double)


def _in_single(op: DynamoOps, double: Any) -> Any:
    return op.Cast(double, to=ONNX_TYPES[torch.float32])


def _with_twin(single: Any, double: Any) -> Any:
    single.meta[_TWIN] = double
    return single


def _torchs_own(function: Any) -> Callable[..., Any]:
    found = internals.torchlib_function(function)
    if found is None:
        raise ExportFailed(f"dynamo exporter: torch translates no {function.__name__} of sizes.")
    return found


def _full(op: DynamoOps) -> Callable[..., Any]:
    """aten::full, of a fraction in float64."""

    def lower(size: Any, fill_value: Any, **kwargs: Any) -> Any:
        if _twin(fill_value) is None or kwargs.get("dtype") not in (torch.float64, ONNX_TYPES[torch.float64]) or size:
            return _torchs_own(torch.ops.aten.full.default)(size, fill_value, **kwargs)
        return op.Identity(_twin(fill_value))

    return lower


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) or _twin(value) is not None


def _twin(value: Any) -> Any:
    return getattr(value, "meta", {}).get(_TWIN)


def _double(op: DynamoOps, value: Any) -> Any:
    """A size, a fraction or a number in float64."""
    if isinstance(value, (bool, int, float)):
        return op.constant(float(value), torch.float64)
    twin = _twin(value)
    return op.Cast(value, to=ONNX_TYPES[torch.float64]) if twin is None else twin
