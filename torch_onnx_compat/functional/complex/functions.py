"""torch's functions of complex tensors, as functions of the two real tensors of a pair.

Math:   (a + ib)(c + id) = (ac - bd) + i(ad + bc), and so for every function that is linear in each of two arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.angles import atan2
from torch_onnx_compat.functional.complex.pair import COMPLEX_TYPES, HANDLERS, Pair, map_leaves, on_pairs, spellings

_ELEMENTWISE = (
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
    for name in _ELEMENTWISE:
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
    return value.real if isinstance(value, Pair) else value


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
    if isinstance(value, Pair):
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
def _copy(input: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, Pair):
        return NotImplemented
    input.real.copy_(_real(source))
    input.imag.copy_(_imaginary(source))
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


def _bilinear(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Pair:
    if not isinstance(a, Pair):
        return Pair(function(a, b.real), function(a, b.imag))
    if not isinstance(b, Pair):
        return Pair(function(a.real, b), function(a.imag, b))
    real = function(a.real, b.real) - function(a.imag, b.imag)
    return Pair(real, function(a.real, b.imag) + function(a.imag, b.real))


@on_pairs("mul", "multiply", "__mul__", "__rmul__")
def _mul(input: Any, other: Any) -> Pair:
    return _bilinear(lambda a, b: a * b, input, other)


@on_pairs("matmul", "mm", "bmm", "mv", "__matmul__")
def _matmul(input: Any, other: Any) -> Pair:
    return _bilinear(torch.matmul, input, other)


@on_pairs("__rmatmul__")
def _rmatmul(input: Any, other: Any) -> Pair:
    return _bilinear(torch.matmul, other, input)


@on_pairs("einsum")
def _einsum(equation: str, *operands: Any) -> Any:
    operands = tuple(operands[0]) if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    place = next((index for index, operand in enumerate(operands) if isinstance(operand, Pair)), None)
    if place is None:
        return torch.einsum(equation, *operands)
    # Linear in each operand: with the parts of the first pair, and so on to the last.
    with_real, with_imag = (
        _einsum(equation, *operands[:place], part, *operands[place + 1 :])
        for part in (operands[place].real, operands[place].imag)
    )
    if not isinstance(with_real, Pair):
        return Pair(with_real, with_imag)
    return Pair(with_real.real - with_imag.imag, with_real.imag + with_imag.real)


@on_pairs("tensordot")
def _tensordot(a: Any, b: Any, dims: Any = 2, out: None = None) -> Pair:
    return _bilinear(lambda x, y: torch.tensordot(x, y, dims), a, b)


@on_pairs("div", "divide", "true_divide", "__div__", "__truediv__")
def _div(input: Any, other: Any, *, rounding_mode: None = None) -> Any:
    if not isinstance(other, Pair):
        return Pair(input.real / other, input.imag / other)
    return _mul(input, _reciprocal(other))


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


@on_pairs("pow", "__pow__")
def _pow(input: Any, exponent: Any) -> Any:
    if not isinstance(input, Pair) or type(exponent) is not int or not 1 <= exponent <= 4:
        return NotImplemented
    return functools.reduce(_mul, [input] * exponent)


@on_pairs("square")
def _square(input: Pair) -> Pair:
    return _bilinear(lambda a, b: a * b, input, input)


@on_pairs("exp")
def _exp(input: Pair) -> Pair:
    return polar(torch.exp(input.real), input.imag)


def polar(abs: Tensor, angle: Tensor) -> Pair:
    """torch.polar."""
    return Pair(abs * torch.cos(angle), abs * torch.sin(angle))


@on_pairs("abs", "absolute", "__abs__")
def _abs(input: Pair) -> Tensor:
    # Scaled, since the square of a part may overflow.
    scale = torch.maximum(input.real.abs(), input.imag.abs())
    safe = torch.where((scale > 0) & (scale < torch.inf), scale, torch.ones_like(scale))
    real, imag = input.real / safe, input.imag / safe
    return torch.sqrt(real * real + imag * imag) * safe


@on_pairs("angle")
def _angle(input: Pair) -> Tensor:
    return atan2(input.imag, input.real)


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


def _register_in_place() -> None:
    """Registers ``add_`` and the other in-place methods: the result is copied into both parts, and so into views."""
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "neg", "reciprocal"):
        for function in spellings(f"{name}_"):
            HANDLERS[function] = functools.partial(_write_in_place, HANDLERS[getattr(Tensor, name)])


def _write_in_place(handler: Callable[..., Any], input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, Pair):
        return NotImplemented  # torch raises its own error for a complex result in a real tensor
    return _copy(input, handler(input, *args, **kwargs))


_register_in_place()
