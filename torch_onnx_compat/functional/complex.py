"""Complex tensors as pairs of real ones, which is all that ONNX has.

While a model is exported, a `Pair` takes the place of a complex tensor. Entries for functions that make complex
tensors of real ones (torch.view_as_complex, torch.polar, the transforms of torch.fft) return a `Pair`; `with_pairs`
makes one of each complex constant that a function is given; and a torch function that meets a `Pair` is answered here,
by functions of its two real tensors. One that nobody has written for pairs gets the complex tensors themselves.

Math:   (a + ib)(c + id) = (ac - bd) + i(ad + bc), and so for every function that is linear in each of two arguments.
Source: https://docs.pytorch.org/docs/stable/complex_numbers.html;
        https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.angles import atan2
from torch_onnx_compat.tracing import is_tracing, untraced

_C: Any = torch._C  # its stubs leave the tracer out

COMPLEX_TYPES = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}
"""By the type of their parts."""

_SHARED = frozenset({"shape", "device", "ndim", "size", "dim", "numel", "layout", "is_cuda", "requires_grad"})
"""Attributes in which a complex tensor and its parts agree."""

_HANDLERS: dict[Any, Callable[..., Any]] = {}


class Pair:
    """Stands for a complex tensor; has a complex tensor's methods and attributes.

    Args:
        real: The real parts.
        imag: The imaginary parts, of the same shape and dtype.
    """

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        self.real, self.imag = real, imag

    @classmethod
    def of(cls, tensor: Tensor) -> Pair:
        """The pair of a complex tensor."""
        parts = torch.view_as_real(tensor.resolve_conj())
        return cls(parts[..., 0], parts[..., 1])

    def tensor(self) -> Tensor:
        """The complex tensor."""
        return torch.complex(self.real, self.imag)

    @property
    def dtype(self) -> torch.dtype:
        """The complex type."""
        return COMPLEX_TYPES[self.real.dtype]

    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        return answer(func, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name in _SHARED:
            return getattr(self.real, name)
        attribute = getattr(Tensor, name)
        if callable(attribute):
            return functools.partial(_call, attribute, self)
        return _call(attribute.__get__, self)

    def __len__(self) -> int:
        return len(self.real)


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a torch function so that the modes in force see it."""
    return torch.overrides.handle_torch_function(function, (args[0],), *args, **kwargs)


def _operator(name: str) -> Callable[..., Any]:
    return lambda self, *args: _call(getattr(Tensor, name), self, *args)


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul"),
    *("pow", "neg", "abs", "getitem", "eq", "ne"),
):
    setattr(Pair, f"__{_name}__", _operator(f"__{_name}__"))


def is_complex(value: Any) -> bool:
    """Whether a value is a complex tensor, as a pair or as torch has it."""
    return isinstance(value, Pair) or (isinstance(value, Tensor) and value.dtype.is_complex)


def has_pairs(args: Any, kwargs: Any) -> bool:
    """Whether there is a pair among a call's arguments."""
    return any(map(_has_pair, args)) or any(map(_has_pair, kwargs.values()))


def has_complex(args: Any, kwargs: Any) -> bool:
    """Whether there is anything complex among a call's arguments: a pair, a tensor, a number."""
    with _C.DisableTorchFunction():  # modes below the one that asks would see a call for every dtype
        return any(map(_has_complex, args)) or (bool(kwargs) and any(map(_has_complex, kwargs.values())))


def with_pairs(func: Any, args: Any, kwargs: Any, constants: Collection[int] = ()) -> tuple[Any, Any]:
    """The arguments of a torch function that knows pairs, with one in place of each complex tensor or number.

    Args:
        func: The function; the arguments of others are returned as they are.
        args: The positional arguments.
        kwargs: The keyword arguments.
        constants: Identities of tensors that are not computed from inputs, though TorchScript traces them as inputs.
    """
    if func not in _HANDLERS or not has_complex(args, kwargs):
        return args, kwargs
    paired = functools.partial(_paired, constants=constants)
    return _mapped(args, paired), _mapped(kwargs, paired)


def answer(func: Any, args: Any, kwargs: Any) -> Any:
    """Calls a torch function, or method of Tensor, with pairs among its arguments."""
    handler = _HANDLERS.get(func)
    result = handler(*args, **kwargs) if handler is not None else NotImplemented
    return func(*_mapped(args, _complex), **_mapped(kwargs, _complex)) if result is NotImplemented else result


def _has_pair(value: Any) -> bool:
    return isinstance(value, Pair) or (isinstance(value, (tuple, list)) and any(map(_has_pair, value)))


def _has_complex(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dtype.is_complex
    return isinstance(value, (Pair, complex)) or (isinstance(value, (tuple, list)) and any(map(_has_complex, value)))


def _paired(value: Any, constants: Collection[int]) -> Any:
    if isinstance(value, complex):
        with untraced():
            return Pair(torch.tensor(value.real), torch.tensor(value.imag))
    if not isinstance(value, Tensor) or not value.dtype.is_complex:
        return value
    if is_tracing() and (id(value) in constants or _C._get_value_trace(value).node().kind() == "prim::Constant"):
        with untraced():
            return Pair(value.real.clone(), value.imag.clone())
    return Pair.of(value)


def _complex(value: Any) -> Any:
    return value.tensor() if isinstance(value, Pair) else value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, change) for item in value)
    if type(value) is dict:
        return {key: _mapped(item, change) for key, item in value.items()}
    return change(value)


# Functions of pairs


def on_pairs(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what a torch function and the Tensor method of its name, or an attribute, do when they meet a pair.

    Args:
        *names: Names in torch or Tensor. The decorated function has the call's arguments, some of them pairs, and
            returns the result, or NotImplemented where only torch itself can tell.
    """

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            for function in _spellings(name):
                _HANDLERS[function] = handler
        return handler

    return register


def _spellings(name: str) -> list[Any]:
    """The function and the method of a name, or the getter of an attribute."""
    found = [getattr(owner, name) for owner in (torch, Tensor) if hasattr(owner, name)]
    return [f if callable(f) else f.__get__ for f in found if hasattr(f, "__get__") or callable(f)]


def _register_elementwise() -> None:
    """Functions that only move, copy, add up or negate elements do the same to both parts."""
    names = (
        *("reshape", "view", "flatten", "unflatten", "permute", "transpose", "swapaxes", "swapdims", "movedim", "t"),
        *("unsqueeze", "squeeze", "expand", "expand_as", "__getitem__", "clone", "contiguous", "detach", "narrow"),
        *("chunk", "split", "tensor_split", "unbind", "select", "index_select", "gather", "take_along_dim", "flip"),
        *("roll", "repeat", "tile", "repeat_interleave", "sum", "mean", "cumsum", "diff"),
        *("neg", "negative", "__neg__", "reshape_as", "view_as", "broadcast_to", "tril", "triu", "diagonal", "unfold"),
        *("T", "hsplit", "vsplit", "atleast_1d", "zeros_like", "ravel", "moveaxis", "rot90"),
    )
    for name in names:
        for function in _spellings(name):
            _HANDLERS[function] = functools.partial(_by_parts, function)
    _HANDLERS[torch.nn.functional.pad] = _pad


def _by_parts(function: Any, *args: Any, **kwargs: Any) -> Any:
    real = function(*_mapped(args, _real), **_mapped(kwargs, _real))
    imag = function(*_mapped(args, _imag), **_mapped(kwargs, _imag))
    if isinstance(real, (tuple, list)):
        return tuple(Pair(a, b) for a, b in zip(real, imag, strict=True))
    return Pair(real, imag)


def _real(value: Any) -> Any:
    return value.real if isinstance(value, Pair) else value


def _imag(value: Any) -> Any:
    """The imaginary part; what is no pair stays as it is, being an index or a size."""
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


@on_pairs("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> Pair:
    return Pair(torch.cat([_real(t) for t in tensors], dim), torch.cat([_imaginary(t) for t in tensors], dim))


@on_pairs("stack")
def _stack(tensors: Any, dim: int = 0) -> Pair:
    return Pair(torch.stack([_real(t) for t in tensors], dim), torch.stack([_imaginary(t) for t in tensors], dim))


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
    if len(operands) == 1:
        return Pair(torch.einsum(equation, operands[0].real), torch.einsum(equation, operands[0].imag))
    if len(operands) != 2:
        return NotImplemented
    return _bilinear(lambda a, b: torch.einsum(equation, a, b), *operands)


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
    # Divided by the larger part first, whose square may be beyond the largest number.
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
    # Scaled, so that parts whose squares are beyond the largest number have a finite length.
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
def _transposed(input: Pair) -> Pair:
    return Pair(input.real.transpose(-2, -1), input.imag.transpose(-2, -1))


@on_pairs("adjoint", "H", "mH")
def _adjoint(input: Pair) -> Pair:
    return Pair(input.real.transpose(-2, -1), -input.imag.transpose(-2, -1))


@on_pairs("resolve_conj", "resolve_neg", "cpu", "cfloat", "type_as")
def _same(input: Pair, *_: Any) -> Pair:
    return input


@on_pairs("to")
def _to(input: Any, *args: Any, **kwargs: Any) -> Any:
    types = {complex_type: real for real, complex_type in COMPLEX_TYPES.items()}

    def part_type(value: Any) -> Any:
        return types.get(value, value) if isinstance(value, torch.dtype) else _real(value)

    wanted = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)]
    if not isinstance(input, Pair) or any(not dtype.is_complex for dtype in wanted):
        return NotImplemented
    args, kwargs = _mapped(args, part_type), _mapped(kwargs, part_type)
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
