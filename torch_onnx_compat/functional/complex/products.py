"""torch's products of complex tensors, as products of the two real tensors of a pair.

Math:   (a + ib)(c + id) = (ac - bd) + i(ad + bc), and so for every function that is linear in each of two arguments.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.functional.complex.pair import HANDLERS, Pair, on_pairs


def bilinear(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Pair:
    """A function that is linear in each of two arguments, of which one at least is a pair."""
    if not isinstance(a, Pair):
        return Pair(function(a, b.real), function(a, b.imag))
    if not isinstance(b, Pair):
        return Pair(function(a.real, b), function(a.imag, b))
    real = function(a.real, b.real) - function(a.imag, b.imag)
    return Pair(real, function(a.real, b.imag) + function(a.imag, b.real))


@on_pairs("mul", "multiply", "__mul__", "__rmul__")
def multiply(input: Any, other: Any) -> Pair:
    """torch.mul."""
    return bilinear(lambda a, b: a * b, input, other)


@on_pairs("matmul", "mm", "bmm", "mv", "__matmul__")
def _matmul(input: Any, other: Any) -> Pair:
    return bilinear(torch.matmul, input, other)


@on_pairs("__rmatmul__")
def _rmatmul(input: Any, other: Any) -> Pair:
    return bilinear(torch.matmul, other, input)


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
    return bilinear(lambda x, y: torch.tensordot(x, y, dims), a, b)


@on_pairs("prod")
def _prod(input: Pair, dim: int | None = None, keepdim: bool = False, **_: None) -> Pair:
    flat = Pair(input.real.reshape(-1), input.imag.reshape(-1)) if dim is None else input
    result = functools.reduce(multiply, _unbound(flat, dim or 0))
    return Pair(result.real.unsqueeze(dim), result.imag.unsqueeze(dim)) if keepdim and dim is not None else result


@on_pairs("cumprod")
def _cumprod(input: Pair, dim: int, **_: None) -> Pair:
    made = list(itertools.accumulate(_unbound(input, dim), multiply))
    return Pair(torch.stack([z.real for z in made], dim), torch.stack([z.imag for z in made], dim))


def _unbound(input: Pair, dim: int) -> list[Pair]:
    return [Pair(a, b) for a, b in zip(input.real.unbind(dim), input.imag.unbind(dim), strict=True)]


def _register_bilinear() -> None:
    """Registers products of two tensors that take no other arguments."""
    for name in ("dot", "inner", "outer", "ger", "kron"):
        on_pairs(name)(_product(getattr(torch, name)))


def _product(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Pair]:
    return lambda input, other: bilinear(function, input, other)


@on_pairs("vdot")
def _vdot(input: Any, other: Any) -> Pair:
    return bilinear(torch.dot, Pair(input.real, -input.imag) if isinstance(input, Pair) else input, other)


def _layer(function: Callable[..., Tensor]) -> Callable[..., Pair]:
    """A layer's function: a product of what goes in and the weight, and a bias."""

    def run(input: Any, weight: Any, bias: Any = None, *options: Any, **named: Any) -> Pair:
        result = bilinear(lambda x, w: function(x, w, None, *options, **named), input, weight)
        if bias is None:
            return result
        axes = (1,) * (weight.dim() - 2)
        real, imag = (bias.real, bias.imag) if isinstance(bias, Pair) else (bias, torch.zeros_like(bias))
        return Pair(result.real + real.reshape(-1, *axes), result.imag + imag.reshape(-1, *axes))

    return run


for _function in (nn.functional.linear, nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d):
    HANDLERS[_function] = _layer(_function)
_register_bilinear()
