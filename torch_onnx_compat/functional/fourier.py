"""Discrete Fourier transforms as products with tables, of real tensors and of pairs.

Math:   X[k] = sum over j of x[j] exp(-2 pi i j k / n): a product with a matrix of cosines and sines, which is computed
        in float64. Padding to n and trimming to n leave rows of the matrix out, or make them 0. A real result needs
        half of the spectrum only, whose inner frequencies count twice.
Source: https://docs.pytorch.org/docs/stable/fft.html; https://docs.pytorch.org/docs/stable/generated/torch.stft.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat.entry import decline
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import constant, static_size

MAX_SIZE, MAX_FRAME = 1024, 2048
"""Lengths up to which a transform, or one of stft, is a product; the tables take 4 n^2 bytes, 16 n^2 for complex."""

Signal = Any
"""A real Tensor, or a Pair."""


def signal(input: Any) -> Signal:
    """The argument of a transform as a floating-point tensor or a pair."""
    if isinstance(input, Pair):
        return input
    if input.dtype.is_complex:
        return Pair.of(input)
    return input if input.dtype.is_floating_point else input.to(torch.get_default_dtype())


def fixed_size(input: Any, dim: int) -> int:
    """Size of an axis that is to be transformed.

    Raises:
        Declined: It is not fixed.
    """
    size = static_size(input.real if isinstance(input, Pair) else input, dim)
    if size is None:
        decline(f"the size of axis {dim}, which is transformed, must be fixed; give no dynamic name to it")
    return size


def as_pair(x: Any) -> Pair:
    """A pair, whose imaginary part is 0 where there was none."""
    if isinstance(x, Pair):
        return x
    return Pair.of(x) if x.dtype.is_complex else Pair(x, torch.zeros_like(x))


def fft(x: Signal, dim: int, size: int, n: int | None, norm: str | None, *, inverse: bool = False) -> Pair:
    """One axis of `size` elements, transformed to n."""
    length = _length(size if n is None else n)
    return _product(x, dim, _table(size, length, length, norm, inverse))


def rfft(x: Tensor, dim: int, size: int, n: int | None, norm: str | None, *, inverse: bool = False) -> Pair:
    """The first half of the spectrum of a real axis."""
    length = _length(size if n is None else n)
    return _product(x, dim, _table(size, length, length // 2 + 1, norm, inverse))


def irfft(x: Signal, dim: int, size: int, n: int | None, norm: str | None, *, inverse: bool = True) -> Tensor:
    """The real axis whose spectrum has the given first half."""
    length = _length(2 * (size - 1) if n is None else n)
    table = _table(size, length, length, norm, inverse)
    table[1 : (length + 1) // 2] *= 2
    table[length // 2 + 1 :] = 0
    stacked = torch.cat((x.real, x.imag), -1) if _is_last(x, dim) else _moved(torch.cat((x.real, x.imag), dim), dim)
    return _moved(stacked @ constant(np.concatenate((table.real, -table.imag)), stacked), dim)


def fftn(input: Any, s: Sequence[int] | None, dim: Any, norm: str | None, *, inverse: bool = False) -> Pair:
    """Several axes of the argument of a rewrite's body."""
    spectrum: Pair = _fft_axes(signal(input), _axes(input, s, dim), norm, inverse)
    return spectrum


def rfftn(input: Tensor, s: Sequence[int] | None, dim: Any, norm: str | None) -> Pair:
    """The last axis as by rfft, the others as by fft."""
    *others, (axis, size, length) = _axes(input, s, dim)
    spectrum: Pair = _fft_axes(rfft(signal(input), axis, size, length, norm), others, norm, False)
    return spectrum


def irfftn(input: Any, s: Sequence[int] | None, dim: Any, norm: str | None) -> Tensor:
    """The last axis as by irfft, the others as by ifft."""
    *others, (axis, size, length) = _axes(input, s, dim)
    return irfft(_fft_axes(as_pair(signal(input)), others, norm, True), axis, size, length, norm)


def _fft_axes(x: Signal, axes: Sequence[tuple[int, int, int | None]], norm: str | None, inverse: bool) -> Any:
    for axis, size, length in reversed(axes):
        x = fft(x, axis, size, length, norm, inverse=inverse)
    return x


def _axes(input: Any, s: Sequence[int] | None, dim: Any) -> list[tuple[int, int, int | None]]:
    """The arguments of an n-dimensional transform: for each axis its size, and its length or None."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is None:
        dim = range(input.dim()) if s is None else range(input.dim() - len(s), input.dim())
    axes = [axis % input.dim() for axis in dim]
    lengths = [None if s is None or (type(s[i]) is int and s[i] == -1) else s[i] for i in range(len(axes))]
    return [(axis, fixed_size(input, axis), length) for axis, length in zip(axes, lengths, strict=True)]


def _length(n: int, largest: int = MAX_SIZE) -> int:
    if isinstance(n, Tensor):
        n = int(n)  # a size of a TorchScript trace, which notes that it is made a number
    if type(n) is not int:
        decline("the length of the transform must be a fixed number")
    if n > largest:
        decline(
            f"transforms have up to {largest} points here, got {n}, whose table would fill the file; transform "
            f"outside of the file"
        )
    return n


def _table(size: int, n: int, outputs: int, norm: str | None, inverse: bool) -> Any:
    """The (size, outputs) matrix of a transform of n points."""
    turns = np.outer(np.arange(size), np.arange(outputs)) % n / n  # reduced, or sines of large angles lose digits
    table = np.exp((2j if inverse else -2j) * np.pi * turns)
    table = table.real * (turns % 0.5 != 0.25) + 1j * (table.imag * (turns % 0.5 != 0))  # sin(pi) is 1e-16 in floats
    table = table + 0.0  # without negative zeros, which would turn the angle of a real number round
    table[n:] = 0
    return (
        table
        * {
            None: 1 / n if inverse else 1,
            "backward": 1 / n if inverse else 1,
            "ortho": 1 / math.sqrt(n),
            "forward": 1 if inverse else 1 / n,
        }[norm]
    )


def _is_last(x: Signal, dim: int) -> bool:
    return dim in (-1, x.dim() - 1)


def _moved(x: Tensor, dim: int) -> Tensor:
    return x if _is_last(x, dim) else x.transpose(dim, -1)


def _product(x: Signal, dim: int, table: npt.NDArray[np.complex128]) -> Pair:
    outputs = table.shape[1]
    joint = np.concatenate((table.real, table.imag), 1)
    if isinstance(x, Pair):
        joint = np.concatenate((joint, np.concatenate((-table.imag, table.real), 1)))
        x = torch.cat((x.real, x.imag), dim)
    moved = _moved(x, dim)
    y = moved @ constant(joint, moved)
    return Pair(_moved(y[..., :outputs], dim), _moved(y[..., outputs:], dim))


def halves_exchanged(x: Any, dim: int | Sequence[int] | None, *, longer_first: bool) -> Any:
    """The argument of a rewrite's body with the second half of each axis before the first one.

    Args:
        x: A tensor or a pair.
        dim: The axes; all of them by default.
        longer_first: Whether the part that comes to stand first is the longer one of an odd axis.
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


# Short-time transforms


def frame_window(window: Tensor | None, n_fft: int, win_length: int | None, like: Tensor) -> Tensor:
    """The window of an stft, filled up with zeros on both sides to n_fft."""
    length = n_fft if win_length is None else win_length
    if window is None:
        window = constant(np.ones(length), like)
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    return torch.cat((constant(np.zeros(left), window), window, constant(np.zeros(n_fft - length - left), window)))


def stft_filters(n_fft: int, outputs: int, scale: float) -> Any:
    """Filters (2 * outputs, 1, n_fft) whose convolution with a signal is its stft: real parts, then imaginary ones."""
    table = _table(n_fft, n_fft, outputs, None, False) * scale
    return np.concatenate((table.real, table.imag), 1).T[:, None]


def istft_filters(n_fft: int, outputs: int, scale: float) -> Any:
    """Filters (2 * outputs, 1, n_fft) whose transposed convolution with an stft adds up the frames."""
    table = _table(outputs, n_fft, n_fft, None, True) * scale
    if outputs != n_fft:
        table[1 : (n_fft + 1) // 2] *= 2
    return np.concatenate((table.real, -table.imag))[:, None]


def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    padding: str | None,
    normalized: bool,
    onesided: bool,
) -> Pair:
    """torch.stft of real signals (length,) or (N, length), with torch's arguments.

    Args:
        x: Signals.
        n_fft: Length of a frame.
        hop_length: Distance of frames; a quarter of n_fft by default.
        win_length: Length of the window; n_fft by default.
        window: Factors of a frame; ones by default.
        padding: Mode of F.pad by which frames are centred; None does without.
        normalized: Whether to divide by the square root of n_fft.
        onesided: Whether to leave out the second half of the spectrum, the first one's mirror image.
    """
    outputs = _length(n_fft, MAX_FRAME) // 2 + 1 if onesided else _length(n_fft, MAX_FRAME)
    x = signal(x)
    signals = x.unsqueeze(1) if x.dim() == 2 else x.unsqueeze(0).unsqueeze(0)
    if padding is not None:
        signals = torch.nn.functional.pad(signals, (n_fft // 2, n_fft // 2), mode=padding)
    filters = constant(stft_filters(n_fft, outputs, 1 / math.sqrt(n_fft) if normalized else 1.0), x)
    if window is not None or (win_length or n_fft) != n_fft:
        filters = filters * frame_window(window, n_fft, win_length, x)
    hop = n_fft // 4 if hop_length is None else hop_length
    spectrum = torch.nn.functional.conv1d(signals, filters, stride=hop)
    if x.dim() == 1:
        spectrum = spectrum.squeeze(0)
    return Pair(spectrum.narrow(-2, 0, outputs), spectrum.narrow(-2, outputs, outputs))


def istft(
    z: Pair,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool,
    length: int | None,
) -> Tensor:
    """torch.istft of (frequencies, frames) or (N, frequencies, frames), with torch's arguments; the result is real."""
    outputs = _length(n_fft, MAX_FRAME) // 2 + 1 if onesided else _length(n_fft, MAX_FRAME)
    hop = n_fft // 4 if hop_length is None else hop_length
    spectrum = torch.cat((z.real, z.imag), -2)
    if spectrum.dim() == 2:
        spectrum = spectrum.unsqueeze(0)
    factors = frame_window(window, n_fft, win_length, spectrum)
    filters = constant(istft_filters(n_fft, outputs, math.sqrt(n_fft) if normalized else 1.0), spectrum) * factors
    transposed = torch.nn.functional.conv_transpose1d
    total = transposed(spectrum, filters, stride=hop)
    envelope = transposed(torch.ones_like(spectrum[:1, :1]), (factors * factors).reshape(1, 1, -1), stride=hop)
    start = n_fft // 2 if center else 0
    end = -start if center and length is None else None
    output = total[:, 0, start:end] / envelope[:, 0, start:end]
    if length is not None:
        output = torch.nn.functional.pad(output, (0, length))[:, :length]
    return output.squeeze(0) if z.dim() == 2 else output
