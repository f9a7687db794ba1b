"""Short-time Fourier transforms, and windows.

Short-time Fourier transforms of real signals, and back.

Math:   torch_onnx_compat.functional.fourier. Frame t is the signal from t * hop_length on, times the window. Short
        frames are transformed as a convolution with windowed cosines and sines, long ones are cut out and transformed
        by themselves. Back, the frames are windowed once more, added up in place, and divided by the sum of the squared
        windows.
Source: https://docs.pytorch.org/docs/stable/generated/torch.stft.html;
        https://docs.pytorch.org/docs/stable/generated/torch.istft.html

Windows of a fixed length as constants.

Math:   of n cells, i = 0, ..., n - 1:
        Bartlett: 1 - |2 i / (n - 1) - 1|. Hamming: alpha - beta cos(2 pi i / (n - 1)).
        Kaiser: I0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / I0(beta).
        A periodic window of n cells is the symmetric one of n + 1 cells but its last; a window of one cell is 1.
Source: https://docs.pytorch.org/docs/stable/signal.html; ATen/native/TensorFactories.cpp;
        https://numpy.org/doc/stable/reference/generated/numpy.kaiser.html
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.complex import Pair, is_complex
from torch_onnx_compat.functional.fourier import DIRECT, as_pair, checked_length, fft, irfft, rfft, signal, table
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant


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
    forth = table(n_fft, n_fft, outputs, None, False) * scale
    return np.concatenate((forth.real, forth.imag), 1).T[:, None]


def istft_filters(n_fft: int, onesided: bool, norm: str) -> Any:
    """Filters (2 * outputs, 1, n_fft) whose transposed convolution with an stft adds up the frames."""
    back = table(n_fft // 2 + 1 if onesided else n_fft, n_fft, n_fft, norm, True)
    if onesided:
        back[1 : (n_fft + 1) // 2] *= 2
    return np.concatenate((back.real, -back.imag))[:, None]


def _convolved(z: Pair, n_fft: int, hop: int, window: Tensor, norm: str, onesided: bool) -> Tensor:
    spectrum = torch.cat((z.real, z.imag), -2)
    filters = constant(istft_filters(n_fft, onesided, norm), spectrum) * window
    return torch.nn.functional.conv_transpose1d(spectrum, filters, stride=hop).squeeze(1)


def _added(z: Pair, n_fft: int, hop: int, window: Tensor, norm: str, onesided: bool) -> Tensor:
    across = z.transpose(-2, -1)
    if onesided:
        return overlapped(irfft(across, -1, n_fft // 2 + 1, n_fft, norm) * window, hop)
    return overlapped(fft(across, -1, n_fft, None, norm, inverse=True).real * window, hop)


def frames(signals: Tensor, size: int, hop: int) -> Tensor:
    """Cuts (N, length) into (N, frames, size), frame t from t * hop on."""
    chunk = math.gcd(size, hop)
    pieces = signals.narrow(1, 0, signals.shape[1] // chunk * chunk).reshape(signals.shape[0], -1, chunk)
    starts = torch.arange((signals.shape[1] - size) // hop + 1, device=signals.device) * (hop // chunk)
    places = starts.unsqueeze(1) + constant(np.arange(size // chunk), signals, torch.int64)
    return take(pieces, places, 1).flatten(2)


def overlapped(cut: Tensor, hop: int) -> Tensor:
    """Adds up (N, frames, size) in place, to (N, (frames - 1) * hop + size)."""
    size = cut.shape[2]
    chunk = math.gcd(size, hop)
    count = size // chunk
    pieces = cut.reshape(cut.shape[0], -1, count, chunk).transpose(1, 2)
    one_by_one = constant(np.eye(count)[:, None, :, None], cut)
    return torch.nn.functional.conv_transpose2d(pieces, one_by_one, stride=(hop // chunk, 1)).flatten(1)


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
    outputs = checked_length(n_fft) // 2 + 1 if onesided else checked_length(n_fft)
    x = signal(x)
    signals = x.unsqueeze(1) if x.dim() == 2 else x.unsqueeze(0).unsqueeze(0)
    if padding is not None:
        signals = torch.nn.functional.pad(signals, (n_fft // 2, n_fft // 2), mode=padding)
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft > DIRECT:
        cut = frames(signals.squeeze(1), n_fft, hop) * frame_window(window, n_fft, win_length, x)
        transform, norm = rfft if onesided else fft, "ortho" if normalized else "backward"
        found: Pair = transform(cut, -1, n_fft, None, norm).transpose(-2, -1)
        return Pair(found.real.squeeze(0), found.imag.squeeze(0)) if x.dim() == 1 else found
    filters = constant(stft_filters(n_fft, outputs, 1 / math.sqrt(n_fft) if normalized else 1.0), x)
    if window is not None or (win_length or n_fft) != n_fft:
        filters = filters * frame_window(window, n_fft, win_length, x)
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
    checked_length(n_fft)
    hop = n_fft // 4 if hop_length is None else hop_length
    spectra = z.unsqueeze(0) if z.dim() == 2 else z
    factors = frame_window(window, n_fft, win_length, z.real)
    norm = "ortho" if normalized else "backward"
    total = (_added if n_fft > DIRECT else _convolved)(spectra, n_fft, hop, factors, norm, onesided)
    squares = (factors * factors).expand(1, z.shape[-1], n_fft)
    start = n_fft // 2 if center else 0
    end = -start if center and length is None else None
    output = total[:, start:end] / overlapped(squares, hop)[:, start:end]
    if length is not None:
        output = torch.nn.functional.pad(output, (0, length))[:, :length]
    return output.squeeze(0) if z.dim() == 2 else output


def bartlett(length: Any, periodic: bool, options: dict[str, Any]) -> Tensor:
    """torch.bartlett_window; the arguments of all of these are those of torch's functions."""
    return _window(length, periodic, np.bartlett, options)


def hamming(length: Any, periodic: bool, alpha: float, beta: float, options: dict[str, Any]) -> Tensor:
    """torch.hamming_window."""
    return _window(length, periodic, lambda n: alpha - beta * np.cos(2 * math.pi / (n - 1) * np.arange(n)), options)


def kaiser(length: Any, periodic: bool, beta: float, options: dict[str, Any]) -> Tensor:
    """torch.kaiser_window."""
    return _window(length, periodic, lambda n: np.kaiser(n, beta), options)


def _window(
    length: Any, periodic: bool, symmetric: Callable[[int], npt.NDArray[Any]], options: dict[str, Any]
) -> Tensor:
    if type(length) is not int:
        decline("the window's length must be fixed; make the window in __init__ and keep it as a buffer")
    table = symmetric(length + periodic)[:length] if length > 1 else np.ones(length)
    return torch.tensor(table, dtype=options.get("dtype") or torch.get_default_dtype(), device=options.get("device"))


@decomposition(torch.stft, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def stft_to_conv(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """Short-time transform of real signals of any length.

    Declines: complex signals; an n_fft with a prime factor above 1024; align_to_window.

    Math: frame t is the signal from t * hop_length on, times the window, transformed.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.stft.html
    """
    if is_complex(input):
        decline("the signal must be real, got a complex one")
    if align_to_window is not None:
        decline(f"align_to_window must be None, got {align_to_window}")
    padding = pad_mode if center else None
    spectrum = stft(input, n_fft, hop_length, win_length, window, padding, normalized, onesided is not False)
    return spectrum if return_complex else torch.stack((spectrum.real, spectrum.imag), -1)


@decomposition(torch.istft, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def istft_to_conv(
    input: Tensor | Pair,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Real signal from its short-time transform, of any number of frames.

    Declines: return_complex; an n_fft with a prime factor above 1024.

    Math: frames are transformed back, windowed once more, and added up in place.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.istft.html
    """
    if return_complex:
        decline("return_complex must be False, got True")
    half = onesided is not False
    return istft(as_pair(input), n_fft, hop_length, win_length, window, center, normalized, half, length)


@decomposition(torch.bartlett_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def bartlett_window_to_constant(window_length: Any, periodic: bool = True, **options: Any) -> Tensor:
    """Triangular window; stock dynamo has no translation of it.

    Declines: a length that varies.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bartlett_window.html
    """
    return bartlett(window_length, periodic, options)


@decomposition(torch.hamming_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def hamming_window_to_constant(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming window; stock dynamo writes ONNX's, which is another.

    Declines: a length that varies.

    Math: torch_onnx_compat.functional.windows; ONNX's HammingWindow has 25 / 46 for alpha, torch 0.54 unless told.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.hamming_window.html
    """
    return hamming(window_length, periodic, alpha, beta, options)


@decomposition(torch.kaiser_window, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def kaiser_window_to_constant(window_length: Any, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser window; stock dynamo has no translation of it.

    Declines: a length that varies.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.kaiser_window.html
    """
    return kaiser(window_length, periodic, beta, options)
