"""torch's functions of complex tensors, as functions of the two real tensors of a pair.

Products are in products.py; exponentials, logarithms, roots and trigonometric functions in elementary.py.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.angles import atan2
from torch_onnx_compat.functional.complex.pair import COMPLEX_TYPES, HANDLERS, Pair, map_leaves, on_pairs, spellings
from torch_onnx_compat.functional.complex.products import bilinear, multiply

BY_PARTS = (
    "reshape",
    "view",
    "flatten",
    "unflatten",
    "permute",
    "transpose",
    "swapaxes",
    "swapdims",
    "movedim",
    "t",
    "unsqueeze",
    "squeeze",
    "expand",
    "expand_as",
    "__getitem__",
    "clone",
    "contiguous",
    "detach",
    "narrow",
    "chunk",
    "split",
    "tensor_split",
    "unbind",
    "select",
    "index_select",
    "gather",
    "take_along_dim",
    "flip",
    "roll",
    "repeat",
    "tile",
    "repeat_interleave",
    "sum",
    "mean",
    "cumsum",
    "diff",
    "neg",
    "negative",
    "__neg__",
    "reshape_as",
    "view_as",
    "broadcast_to",
    "tril",
    "triu",
    "diagonal",
    "unfold",
    "T",
    "hsplit",
    "vsplit",
    "atleast_1d",
    "zeros_like",
    "ravel",
    "moveaxis",
    "rot90",
)
"""Functions that move, copy, add up or negate elements."""


def _register_elementwise() -> None:
    """Registers the functions that apply to both parts alike: they move, copy, add up or negate elements."""
    for name in BY_PARTS:
        for function in spellings(name):
            HANDLERS[function] = functools.partial(_by_parts, function)
    HANDLERS[torch.nn.functional.pad] = _pad


def _by_parts(function: Any, *args: Any, **kwargs: Any) -> Any:
    real = function(*map_leaves(args, _real), **map_leaves(kwargs, _real))
    imag = function(*map_leaves(args, _imag), **map_leaves(kwargs, _imag))
    if isinstance(real, (tuple, list)):
        return tuple(Pair(a, b) for a, b in zip(real, imag, strict=True))
    return Pair(real, imag)


def _real(value: Any) -> Any:
    return value.real if isinstance(value, (Pair, complex)) else value


def _imag(value: Any) -> Any:
    """The imaginary part of a pair; other arguments, such as indices and sizes, stay as they are."""
    return value.imag if isinstance(value, Pair) else value


def _pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    if value or not isinstance(input, Pair):
        return NotImplemented
    return _by_parts(torch.nn.functional.pad, input, pad, mode)


_register_elementwise()


def _imaginary(value: Any) -> Any:
    """The imaginary part of a number or tensor, real ones included."""
    if isinstance(value, (Pair, complex)):
        return value.imag
    return torch.zeros_like(value) if isinstance(value, Tensor) else 0.0


@on_pairs("__setitem__")
def _setitem(input: Any, index: Any, value: Any) -> Any:
    if not isinstance(input, Pair):
        return NotImplemented
    input.real[index] = _real(value)
    input.imag[index] = _imaginary(value)
    return None


@on_pairs("copy_")
def copy(input: Any, source: Any, non_blocking: bool = False) -> Any:
    """Tensor.copy_."""
    if not isinstance(input, Pair):
        return NotImplemented
    input.real.copy_(_real(source))
    input.imag.copy_(_imaginary(source))
    return input


_VALUES = {
    "masked_fill": 2,
    "masked_scatter": 2,
    "index_fill": 3,
    "index_add": 3,
    "index_copy": 3,
    "scatter": 3,
    "scatter_add": 3,
    "lerp": 1,
}
"""Functions that take over or add values, by the place of these among their arguments."""


def _register_functions_of_values() -> None:
    for name, place in _VALUES.items():
        for function in spellings(name):
            HANDLERS[function] = functools.partial(_with_values, function, place)


def _with_values(function: Any, place: int, *args: Any, **kwargs: Any) -> Any:
    """Applies a function to both parts; a real value has no imaginary one."""
    if len(args) <= place or "reduce" in kwargs:
        return NotImplemented
    kept, value, more = args[:place], args[place], args[place + 1 :]
    if not isinstance(args[0], Pair):
        kept = (Pair(args[0], torch.zeros_like(args[0])), *kept[1:])
    real = function(*map_leaves(kept, _real), _real(value), *more, **kwargs)
    return Pair(real, function(*map_leaves(kept, _imag), _imaginary(value), *more, **kwargs))


_register_functions_of_values()


def _new(input: Pair, real: float, args: Any, dtype: torch.dtype | None, options: Any) -> Any:
    """A tensor of one real number, of the input's dtype where no other is asked for."""
    size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    if dtype is not None and dtype is not input.dtype:
        return NotImplemented if dtype.is_complex else input.real.new_full(size, real, dtype=dtype, **options)
    return Pair(input.real.new_full(size, real, **options), input.real.new_zeros(size, **options))


@on_pairs("new_zeros", "new_empty")
def _new_zeros(input: Pair, *size: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    return _new(input, 0.0, size, dtype, options)


@on_pairs("new_ones")
def _new_ones(input: Pair, *size: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    return _new(input, 1.0, size, dtype, options)


@on_pairs("full_like")
def _full_like(input: Pair, fill_value: Any, **_: None) -> Pair:
    return Pair(torch.zeros_like(input.real) + _real(fill_value), torch.zeros_like(input.imag) + _imaginary(fill_value))


@on_pairs("zero_")
def _zero(input: Pair) -> Pair:
    input.real.zero_()
    input.imag.zero_()
    return input


@on_pairs("fill_")
def _fill(input: Pair, value: Any) -> Pair:
    input.real.fill_(_real(value))
    input.imag.fill_(_imaginary(value))
    return input


@on_pairs("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> Pair:
    return Pair(torch.cat([_real(t) for t in tensors], dim), torch.cat([_imaginary(t) for t in tensors], dim))


@on_pairs("stack")
def _stack(tensors: Any, dim: int = 0) -> Pair:
    return Pair(torch.stack([_real(t) for t in tensors], dim), torch.stack([_imaginary(t) for t in tensors], dim))


@on_pairs("ones_like")
def _ones_like(input: Pair) -> Pair:
    return Pair(torch.ones_like(input.real), torch.zeros_like(input.imag))


@on_pairs("where")
def _where(condition: Tensor, input: Any, other: Any) -> Pair:
    return Pair(
        torch.where(condition, _real(input), _real(other)), torch.where(condition, _imaginary(input), _imaginary(other))
    )


@on_pairs("add", "__add__", "__radd__")
def _add(input: Any, other: Any, *, alpha: float = 1) -> Pair:
    if alpha != 1:
        other = other * alpha
    return Pair(_real(input) + _real(other), _imaginary(input) + _imaginary(other))


@on_pairs("sub", "subtract", "__sub__")
def _sub(input: Any, other: Any, *, alpha: float = 1) -> Pair:
    if alpha != 1:
        other = other * alpha
    return Pair(_real(input) - _real(other), _imaginary(input) - _imaginary(other))


@on_pairs("__rsub__")
def _rsub(input: Any, other: Any) -> Pair:
    return Pair(_real(other) - _real(input), _imaginary(other) - _imaginary(input))


@on_pairs("div", "divide", "true_divide", "__div__", "__truediv__")
def _div(input: Any, other: Any, *, rounding_mode: None = None) -> Any:
    if not isinstance(other, Pair):
        return Pair(input.real / other, input.imag / other)
    return multiply(input, _reciprocal(other))


@on_pairs("__rtruediv__", "__rdiv__")
def _rdiv(input: Any, other: Any) -> Any:
    return _div(other, input)


@on_pairs("reciprocal")
def _reciprocal(input: Pair) -> Pair:
    # Divides by the larger part first, since its square may overflow.
    scale = torch.maximum(input.real.abs(), input.imag.abs())
    real, imag = input.real / scale, input.imag / scale
    square = (real * real + imag * imag) * scale
    return Pair(real / square, -imag / square)


@on_pairs("square")
def _square(input: Pair) -> Pair:
    return bilinear(lambda a, b: a * b, input, input)


@on_pairs("abs", "absolute", "__abs__")
def absolute(input: Pair) -> Tensor:
    """torch.abs."""
    # Scaled, since the square of a part may overflow.
    scale = torch.maximum(input.real.abs(), input.imag.abs())
    safe = torch.where((scale > 0) & (scale < torch.inf), scale, torch.ones_like(scale))
    real, imag = input.real / safe, input.imag / safe
    return torch.sqrt(real * real + imag * imag) * safe


@on_pairs("angle")
def angle(input: Pair) -> Tensor:
    """torch.angle."""
    return atan2(input.imag, input.real)


@on_pairs("sgn")
def _sgn(input: Pair) -> Pair:
    length = absolute(input)
    safe = torch.where(length == 0, torch.ones_like(length), length)
    return Pair(input.real / safe, input.imag / safe)


@on_pairs("norm")
def _norm(input: Pair, p: Any = "fro", dim: Any = None, keepdim: bool = False, **_: None) -> Any:
    if p == "nuc":
        return NotImplemented  # of a matrix: its singular values are not those of its absolute values
    return torch.norm(absolute(input), 2 if p in ("fro", None) else p, dim, keepdim)


def _vector_norm(x: Pair, ord: Any = 2, dim: Any = None, keepdim: bool = False, **_: None) -> Tensor:
    result: Tensor = torch.linalg.vector_norm(absolute(x), ord, dim, keepdim)
    return result


HANDLERS[torch.linalg.vector_norm] = _vector_norm


@on_pairs("eq", "__eq__")
def _eq(input: Any, other: Any) -> Any:
    return (_real(input) == _real(other)) & (_imaginary(input) == _imaginary(other))


@on_pairs("ne", "not_equal", "__ne__")
def _ne(input: Any, other: Any) -> Any:
    return (_real(input) != _real(other)) | (_imaginary(input) != _imaginary(other))


@on_pairs("isnan")
def _isnan(input: Pair) -> Tensor:
    return torch.isnan(input.real) | torch.isnan(input.imag)


@on_pairs("isinf")
def _isinf(input: Pair) -> Tensor:
    return torch.isinf(input.real) | torch.isinf(input.imag)


@on_pairs("isfinite")
def _isfinite(input: Pair) -> Tensor:
    return torch.isfinite(input.real) & torch.isfinite(input.imag)


@on_pairs("var")
def _var(input: Pair, *args: Any, **kwargs: Any) -> Tensor:
    return torch.var(input.real, *args, **kwargs) + torch.var(input.imag, *args, **kwargs)


@on_pairs("std")
def _std(input: Pair, *args: Any, **kwargs: Any) -> Tensor:
    return torch.sqrt(_var(input, *args, **kwargs))


def _normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None) -> Pair:
    length = torch.norm(absolute(input), p, dim, keepdim=True).clamp_min(eps)
    return Pair(input.real / length, input.imag / length)


HANDLERS[torch.nn.functional.normalize] = _normalize


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return NotImplemented if training and p else input


HANDLERS[torch.nn.functional.dropout] = _dropout


@on_pairs("addcmul")
def _addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return input + tensor1 * tensor2 * value


@on_pairs("addcdiv")
def _addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return input + tensor1 / tensor2 * value


@on_pairs("addmm", "addmv", "baddbmm")
def _addmm(input: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    return input * beta + (a @ b) * alpha


@on_pairs("conj", "conj_physical")
def _conj(input: Pair) -> Pair:
    return Pair(input.real, -input.imag)


@on_pairs("mT")
def _transpose(input: Pair) -> Pair:
    return Pair(input.real.transpose(-2, -1), input.imag.transpose(-2, -1))


@on_pairs("adjoint", "H", "mH")
def _adjoint(input: Pair) -> Pair:
    return Pair(input.real.transpose(-2, -1), -input.imag.transpose(-2, -1))


@on_pairs("resolve_conj", "resolve_neg", "cpu", "cfloat", "type_as")
def _return_input(input: Pair, *_: Any) -> Pair:
    return input


@on_pairs("to")
def _to(input: Any, *args: Any, **kwargs: Any) -> Any:
    types = {complex_type: real for real, complex_type in COMPLEX_TYPES.items()}

    def part_type(value: Any) -> Any:
        return types.get(value, value) if isinstance(value, torch.dtype) else _real(value)

    wanted = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)]
    if not isinstance(input, Pair) or any(not dtype.is_complex for dtype in wanted):
        return NotImplemented
    args, kwargs = map_leaves(args, part_type), map_leaves(kwargs, part_type)
    return Pair(input.real.to(*args, **kwargs), input.imag.to(*args, **kwargs))


@on_pairs("real")
def _real_part(input: Pair) -> Tensor:
    return input.real


@on_pairs("imag")
def _imag_part(input: Pair) -> Tensor:
    return input.imag


@on_pairs("view_as_real")
def view_as_real(input: Pair) -> Tensor:
    """torch.view_as_real."""
    return torch.stack((input.real, input.imag), -1)


@on_pairs("is_complex")
def _is_complex(input: Pair) -> bool:
    return True


@on_pairs("is_floating_point")
def _is_floating_point(input: Pair) -> bool:
    return False
