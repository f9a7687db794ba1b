"""Discrete Fourier transforms of real tensors and of pairs, as products with constant matrices.

Math:   X[k] = sum over j of x[j] exp(-2 pi i j k / n): a product with a matrix of cosines and sines, which is computed
        in float64. Trimming to n leaves rows of the matrix out, and padding to n makes rows 0. A real result needs
        half of the spectrum only, in which the inner frequencies count twice.
Source: https://docs.pytorch.org/docs/stable/fft.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat.catalogue.entry import decline
from torch_onnx_compat.functional import fourier_of_any_size
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import constant, static_size

DIRECT = 256
"""Most points of a transform in one product, the fastest way (benchmarks/results/transforms.md). In two products, of 32
and 64 points, the tables of 2048 points take a hundredth of the space."""

MAX_PRIME = 1024
"""Largest prime factor of a length; the tables of a product of p points take 16 p^2 bytes."""

Signal = Any
"""A real Tensor, or a Pair."""


def signal(input: Any) -> Signal:
    """The argument of a transform as a floating-point tensor or a pair."""
    if isinstance(input, Pair):
        return input
    if input.dtype.is_complex:
        return Pair.of(input)
    return input if input.dtype.is_floating_point else input.to(torch.get_default_dtype())


def fixed_size(input: Any, dim: int) -> int | None:
    """Size of an axis that is to be transformed; None if it varies."""
    return static_size(input.real if isinstance(input, Pair) else input, dim)


def as_pair(x: Any) -> Pair:
    """A signal as a pair; the imaginary part of a real one is 0."""
    if isinstance(x, Pair):
        return x
    return Pair.of(x) if x.dtype.is_complex else Pair(x, torch.zeros_like(x))


def fft(x: Signal, dim: int, size: int | None, n: Any, norm: str | None, *, inverse: bool = False) -> Pair:
    """Transforms one axis of `size` elements to n points."""
    if size is None or _is_symbolic(n):
        return fourier_of_any_size.transform(x, dim, n, norm, inverse=inverse)
    length = check_length(size if n is None else n)
    return _transform(x, dim, size, length, length, norm, inverse)


def rfft(x: Tensor, dim: int, size: int | None, n: Any, norm: str | None, *, inverse: bool = False) -> Pair:
    """Transforms a real axis; returns the first half of the spectrum."""
    if size is None or _is_symbolic(n):
        return fourier_of_any_size.transform(x, dim, n, norm, inverse=inverse, half=True)
    length = check_length(size if n is None else n)
    return _transform(x, dim, size, length, length // 2 + 1, norm, inverse)


def irfft(x: Signal, dim: int, size: int | None, n: Any, norm: str | None, *, inverse: bool = True) -> Tensor:
    """Transforms the first half of a spectrum back to a real axis."""
    if size is None or _is_symbolic(n):
        return fourier_of_any_size.real_from_half(x, dim, n, norm, inverse=inverse)
    length = check_length(2 * (size - 1) if n is None else n)
    if _factors(length) is not None:
        weights = np.full(length // 2 + 1, 2.0)
        weights[0] = 1
        weights[(length + 1) // 2 :] = 1  # the Nyquist frequency of an even length
        half = _resize(Pair(_move_last(x.real, dim), _move_last(x.imag, dim)), size, length // 2 + 1)
        whole = _transform(half * constant(weights, half.real), -1, length // 2 + 1, length, length, norm, inverse)
        return _move_last(whole.real, dim)
    weighted = table(size, length, length, norm, inverse)
    weighted[1 : (length + 1) // 2] *= 2
    weighted[length // 2 + 1 :] = 0
    stacked = torch.cat((x.real, x.imag), -1) if _is_last(x, dim) else _move_last(torch.cat((x.real, x.imag), dim), dim)
    return _move_last(stacked @ constant(np.concatenate((weighted.real, -weighted.imag)), stacked), dim)


def _is_symbolic(n: Any) -> bool:
    """Whether a length is one of torch.export's sizes that vary; what a size is in a trace is asked for by `int`."""
    return isinstance(n, torch.SymInt)


def fftn(input: Any, s: Sequence[int] | None, dim: Any, norm: str | None, *, inverse: bool = False) -> Pair:
    """Transforms several axes of the argument of a rewrite's body."""
    spectrum: Pair = _fft_axes(signal(input), _axes(input, s, dim), norm, inverse)
    return spectrum


def rfftn(input: Tensor, s: Sequence[int] | None, dim: Any, norm: str | None) -> Pair:
    """Transforms the last axis by rfft, the others by fft."""
    *others, (axis, size, length) = _axes(input, s, dim)
    spectrum: Pair = _fft_axes(rfft(signal(input), axis, size, length, norm), others, norm, False)
    return spectrum


def irfftn(input: Any, s: Sequence[int] | None, dim: Any, norm: str | None) -> Tensor:
    """Transforms the last axis by irfft, the others by ifft."""
    *others, (axis, size, length) = _axes(input, s, dim)
    return irfft(_fft_axes(as_pair(signal(input)), others, norm, True), axis, size, length, norm)


def _fft_axes(x: Signal, axes: Sequence[tuple[int, int | None, Any]], norm: str | None, inverse: bool) -> Any:
    for axis, size, length in reversed(axes):
        x = fft(x, axis, size, length, norm, inverse=inverse)
    return x


def _axes(input: Any, s: Sequence[int] | None, dim: Any) -> list[tuple[int, int | None, Any]]:
    """The axes of an n-dimensional transform: number, size or None, and length or None."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is None:
        dim = range(input.dim()) if s is None else range(input.dim() - len(s), input.dim())
    axes = [axis % input.dim() for axis in dim]
    lengths = [None if s is None or (type(s[i]) is int and s[i] == -1) else s[i] for i in range(len(axes))]
    return [(axis, fixed_size(input, axis), length) for axis, length in zip(axes, lengths, strict=True)]


def check_length(n: int) -> int:
    """Checks the length of a transform, and returns it as an int.

    Raises:
        Declined: It is not fixed, or has too large a prime factor.
    """
    if isinstance(n, Tensor):
        n = int(n)  # a size of a TorchScript trace; DecisionLog records the conversion
    if type(n) is not int:
        decline("the length of the transform must be a fixed number")
    if n > MAX_PRIME and _largest_prime(n) > MAX_PRIME:
        decline(
            f"lengths have no prime factor above {MAX_PRIME} here, got {n}, whose table would fill the file; choose "
            f"another length, such as a power of 2, or transform outside of the file"
        )
    return n


def _largest_prime(n: int) -> int:
    factor = 2
    while factor * factor <= n:
        if n % factor:
            factor += 1
        else:
            n //= factor
    return n


def _factors(n: int) -> tuple[int, int] | None:
    """Two factors of nearly the same size; None if a single product is better."""
    if n <= DIRECT:
        return None
    smaller = next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)
    return (smaller, n // smaller) if smaller >= 4 or n > MAX_PRIME else None


def _transform(x: Signal, dim: int, size: int, n: int, outputs: int, norm: str | None, inverse: bool) -> Pair:
    """Transforms one axis of `size` elements to n points; returns the first `outputs` of them.

    Math:   for n = a b, j = b j1 + j2 and k = k1 + a k2 the sum is one of a points over j1, for each j2, times
            exp(-2 pi i j2 k1 / n), and one of b points over j2, for each k1 (Cooley and Tukey, 1965).
    """
    factors = _factors(n)
    if factors is None:
        return _product(x, dim, table(size, n, outputs, norm, inverse))
    a, b = factors
    parts = Pair(_move_last(x.real, dim), _move_last(x.imag, dim)) if isinstance(x, Pair) else _move_last(x, dim)
    parts = _resize(parts, size, n)
    grid = parts.reshape((*parts.shape[:-1], a, b))
    rows = _product_of_columns(grid, _roots(a, a, a, inverse) * _scale(norm, n, inverse))
    turns = _roots(a, b, n, inverse)
    cosines, sines = constant(turns.real, rows.real), constant(turns.imag, rows.real)
    turned = Pair(rows.real * cosines - rows.imag * sines, rows.real * sines + rows.imag * cosines)
    unscaled = "forward" if inverse else "backward"
    found = _transform(turned, -1, b, b, b, unscaled, inverse).transpose(-2, -1)
    flat = found.reshape((*found.shape[:-2], n)).narrow(-1, 0, outputs)
    return Pair(_move_last(flat.real, dim), _move_last(flat.imag, dim))


def _resize(x: Signal, size: int, n: int) -> Signal:
    """Trims the last axis to n elements, or pads it with zeros."""
    if size == n:
        return x
    if isinstance(x, Pair):
        return Pair(_resize(x.real, size, n), _resize(x.imag, size, n))
    return x.narrow(-1, 0, n) if size > n else torch.nn.functional.pad(x, (0, n - size))


def _roots(rows: int, columns: int, n: int, inverse: bool) -> npt.NDArray[np.complex128]:
    """exp(-2 pi i j k / n), of j rows and k columns."""
    turns = np.outer(np.arange(rows), np.arange(columns)) % n / n  # modulo n, since sines of large angles lose digits
    roots = np.exp((2j if inverse else -2j) * np.pi * turns)
    roots = roots.real * (turns % 0.5 != 0.25) + 1j * (
        roots.imag * (turns % 0.5 != 0)
    )  # exact zeros: np.sin(pi) is 1e-16
    found: npt.NDArray[np.complex128] = (
        roots + 0.0
    )  # no negative zeros, which would change the angle of a real number from pi to -pi
    return found


def _scale(norm: str | None, n: int, inverse: bool) -> float:
    return {
        None: 1 / n if inverse else 1,
        "backward": 1 / n if inverse else 1,
        "ortho": 1 / math.sqrt(n),
        "forward": 1 if inverse else 1 / n,
    }[norm]


def table(size: int, n: int, outputs: int, norm: str | None, inverse: bool) -> Any:
    """The (size, outputs) matrix of a transform of n points."""
    roots = _roots(size, outputs, n, inverse)
    roots[n:] = 0
    return roots * _scale(norm, n, inverse)


def _is_last(x: Signal, dim: int) -> bool:
    return dim in (-1, x.dim() - 1)


def _move_last(x: Tensor, dim: int) -> Tensor:
    return x if _is_last(x, dim) else x.transpose(dim, -1)


def _product(x: Signal, dim: int, factors: npt.NDArray[np.complex128]) -> Pair:
    outputs = factors.shape[1]
    joint = np.concatenate((factors.real, factors.imag), 1)
    if isinstance(x, Pair):
        joint = np.concatenate((joint, np.concatenate((-factors.imag, factors.real), 1)))
        x = torch.cat((x.real, x.imag), dim)
    moved = _move_last(x, dim)
    y = moved @ constant(joint, moved)
    return Pair(_move_last(y[..., :outputs], dim), _move_last(y[..., outputs:], dim))


def _product_of_columns(x: Signal, factors: npt.NDArray[np.complex128]) -> Pair:
    """A square matrix times the columns of (..., rows, columns)."""
    rows = len(factors)
    joint = np.concatenate((factors.real, factors.imag))
    if isinstance(x, Pair):
        joint = np.concatenate((joint, np.concatenate((-factors.imag, factors.real))), 1)
        x = torch.cat((x.real, x.imag), -2)
    y = constant(joint, x) @ x
    return Pair(y[..., :rows, :], y[..., rows:, :])


def exchange_halves(x: Any, dim: int | Sequence[int] | None, *, longer_first: bool) -> Any:
    """Exchanges the halves of each axis of the argument of a rewrite's body.

    Args:
        x: A tensor or a pair.
        dim: The axes; all of them by default.
        longer_first: Whether the longer part of an odd axis comes first in the result.
    """
    parts: tuple[Tensor, ...] = (x.real, x.imag) if isinstance(x, Pair) else (x,)
    example = parts[0]
    dims = range(x.dim()) if dim is None else (dim,) if isinstance(dim, int) else dim
    for axis in [d % x.dim() for d in dims]:
        known = static_size(example, axis)
        size = example.shape[axis] if known is None else known
        middle = size // 2 if longer_first else (size + 1) // 2
        before = (slice(None),) * axis
        after, first = (*before, slice(middle, None)), (*before, slice(None, middle))
        parts = tuple(torch.cat((p[after], p[first]), axis) for p in parts)
    return Pair(*parts) if isinstance(x, Pair) else parts[0]
