"""The pair of real tensors that stands for a complex tensor, and its dispatch of torch's functions.

Entries for functions that make complex tensors of real ones (torch.view_as_complex, torch.polar, the transforms of
torch.fft) return a `Pair`; `with_pairs` converts complex constants among the arguments of a function. A torch function
of a `Pair` is computed by its handler. A function without a handler gets complex tensors.

Source: https://docs.pytorch.org/docs/stable/complex_numbers.html;
        https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from torch_onnx_compat.tracing import below_function_modes, is_tracing, recorded_value, without_tracing

COMPLEX_TYPES = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}
"""Complex types by the type of their parts."""


_OF_PYTHON: dict[Any, torch.dtype] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}
"""torch's types for Python's, which torch takes in their place."""


def part_type(dtype: Any) -> torch.dtype | None:
    """The type of the parts of a complex type; None of a real one. Either may be Python's."""
    found = _OF_PYTHON.get(dtype, dtype)
    return found.to_real() if found.is_complex else None


_SHARED = frozenset({"shape", "device", "ndim", "size", "dim", "numel", "layout", "is_cuda", "requires_grad"})
"""Attributes in which a complex tensor and its parts agree."""

HANDLERS: dict[Any, Callable[..., Any]] = {}
"""The handlers of torch's functions of pairs; functions.py registers them."""


class Pair:
    """A pair of real tensors with the methods and attributes of a complex tensor.

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


# Whoever looks at the tensors among arguments, such as what a branch writes to or a loop reads, sees both parts.
register_pytree_node(Pair, lambda pair: ([pair.real, pair.imag], None), lambda parts, _: Pair(*parts))

_answers_directly: ContextVar[bool] = ContextVar("answers_directly", default=False)


@contextmanager
def answer_directly() -> Iterator[None]:
    """While active, methods of pairs call their handlers directly: no mode rewrites the body of an entry or handler."""
    token = _answers_directly.set(True)
    try:
        yield
    finally:
        _answers_directly.reset(token)


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a torch function so that the active modes see the call."""
    if _answers_directly.get():
        return answer(function, args, kwargs)
    return torch.overrides.handle_torch_function(function, (args[0],), *args, **kwargs)


def _operator(name: str) -> Callable[..., Any]:
    return lambda self, *args: _call(getattr(Tensor, name), self, *args)


for _name in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "matmul",
    "rmatmul",
    "pow",
    "neg",
    "abs",
    "getitem",
    "setitem",
    "eq",
    "ne",
]:
    setattr(Pair, f"__{_name}__", _operator(f"__{_name}__"))


def is_complex(value: Any) -> bool:
    """Whether a value is a complex tensor, as a pair or as torch has it."""
    return isinstance(value, Pair) or (isinstance(value, Tensor) and value.dtype.is_complex)


def has_pairs(args: Any, kwargs: Any) -> bool:
    """Whether there is a pair among a call's arguments."""
    return any(map(_has_pair, args)) or any(map(_has_pair, kwargs.values()))


def has_complex(args: Any, kwargs: Any) -> bool:
    """Whether there is anything complex among a call's arguments: a pair, a tensor, a number."""
    with below_function_modes():  # else the modes below would see a call for each .dtype
        return any(map(_has_complex, args)) or (bool(kwargs) and any(map(_has_complex, kwargs.values())))


def with_pairs(func: Any, args: Any, kwargs: Any, constants: Collection[int] = ()) -> tuple[Any, Any]:
    """Replaces the complex tensors and numbers among the arguments of a torch function that has a handler by pairs.

    Args:
        func: The function; without a handler its arguments are returned unchanged.
        args: The positional arguments.
        kwargs: The keyword arguments.
        constants: Identities of tensors that are not computed from inputs, though TorchScript traces them as inputs.
    """
    if func not in HANDLERS or not has_complex(args, kwargs):
        return args, kwargs
    to_pair = functools.partial(_to_pair, constants=constants)
    return map_leaves(args, to_pair), map_leaves(kwargs, to_pair)


def answer(func: Any, args: Any, kwargs: Any) -> Any:
    """Calls a torch function, or a method of Tensor, with pairs among its arguments."""
    handler = HANDLERS.get(func)
    if handler is not None:
        with answer_directly():
            result = handler(*args, **kwargs)
        if result is not NotImplemented:
            return result
    return func(*map_leaves(args, _to_complex), **map_leaves(kwargs, _to_complex))


def _has_pair(value: Any) -> bool:
    return isinstance(value, Pair) or (isinstance(value, (tuple, list)) and any(map(_has_pair, value)))


def _has_complex(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dtype.is_complex
    return isinstance(value, (Pair, complex)) or (isinstance(value, (tuple, list)) and any(map(_has_complex, value)))


def _to_pair(value: Any, constants: Collection[int]) -> Any:
    if isinstance(value, complex):
        with without_tracing():
            return Pair(torch.tensor(value.real), torch.tensor(value.imag))
    if not isinstance(value, Tensor) or not value.dtype.is_complex:
        return value
    if is_tracing() and (id(value) in constants or recorded_value(value).node().kind() == "prim::Constant"):
        with without_tracing():
            return Pair(value.real.clone(), value.imag.clone())
    return Pair.of(value)


def _to_complex(value: Any) -> Any:
    return value.tensor() if isinstance(value, Pair) else value


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Applies a function to each leaf of a structure of lists, tuples and dicts."""
    if type(value) in (tuple, list):
        return type(value)(map_leaves(item, change) for item in value)
    if type(value) is dict:
        return {key: map_leaves(item, change) for key, item in value.items()}
    return change(value)


def on_pairs(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the handler of a torch function and of the Tensor method or attribute of the same name.

    Args:
        *names: Names in torch or Tensor. The decorated function has the call's arguments, some of them pairs, and
            returns the result, or NotImplemented if torch is to compute it with complex tensors.
    """

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            for function in spellings(name):
                HANDLERS[function] = handler
        return handler

    return register


def spellings(name: str) -> list[Any]:
    """The torch function and the Tensor method of a name, or the getter of the attribute."""
    found = [getattr(owner, name) for owner in (torch, Tensor) if hasattr(owner, name)]
    return [f if callable(f) else f.__get__ for f in found if hasattr(f, "__get__") or callable(f)]
