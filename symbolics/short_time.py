"""Short-time Fourier transforms of real signals and back, and windows."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional.complex import Pair, is_complex
from torch_onnx_compat.functional.fourier import DIRECT, as_pair, check_length, fft, irfft, rfft, signal, table
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size

TRANSFORM = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
WINDOW = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)


# Transforms (torch_onnx_compat.functional.fourier). Frame t is the signal from t * hop_length on, times the window.
# Short frames are transformed as a convolution with windowed cosines and sines, long ones are cut out and transformed
# by themselves. Back, the frames are windowed once more, added up in place, and divided by the sum of the squared
# windows.


def frame_window(window: Tensor | None, n_fft: int, win_length: int | None, like: Tensor) -> Tensor:
    """The window of a transform, filled up with zeros on both sides to n_fft.

    Raises:
        Declined: Its length varies.
    """
    if window is not None and static_size(window, 0) is None:
        decline("the length of the window must be fixed; make it in __init__ and keep it as a buffer")
    length = n_fft if win_length is None else int(win_length)
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


def frames(signals: Tensor, size: int, hop: int) -> Tensor:
    """Cuts (N, length) into (N, frames, size), frame t from t * hop on."""
    chunk = math.gcd(size, hop)
    pieces = signals.narrow(1, 0, signals.shape[1] // chunk * chunk).reshape(signals.shape[0], -1, chunk)
    starts = torch.arange((signals.shape[1] - size) // hop + 1, device=signals.device) * (hop // chunk)
    places = starts.unsqueeze(1) + constant(np.arange(size // chunk), signals, torch.int64)
    return take(pieces, places, 1).flatten(2)


def overlap_add(cut: Tensor, hop: int) -> Tensor:
    """Adds up (N, frames, size) in place, to (N, (frames - 1) * hop + size)."""
    size = cut.shape[2]
    chunk = math.gcd(size, hop)
    count = size // chunk
    pieces = cut.reshape(cut.shape[0], -1, count, chunk).transpose(1, 2)
    one_by_one = constant(np.eye(count)[:, None, :, None], cut)
    return torch.nn.functional.conv_transpose2d(pieces, one_by_one, stride=(hop // chunk, 1)).flatten(1)


@decomposition(torch.stft, **TRANSFORM)
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
    """
    if is_complex(input):
        decline("the signal must be real, got a complex one")
    if align_to_window is not None:
        decline(f"align_to_window must be None, got {align_to_window}")
    n_fft = check_length(n_fft)
    x = signal(input)
    signals = x.unsqueeze(1) if x.dim() == 2 else x.unsqueeze(0).unsqueeze(0)
    if center:
        signals = torch.nn.functional.pad(signals, (n_fft // 2, n_fft // 2), mode=pad_mode)
    hop = n_fft // 4 if hop_length is None else hop_length
    half = onesided is not False
    if n_fft > DIRECT or x.dtype == torch.float64:  # onnxruntime has no Conv of float64
        cut = frames(signals.squeeze(1), n_fft, hop) * frame_window(window, n_fft, win_length, x)
        transform, norm = rfft if half else fft, "ortho" if normalized else "backward"
        found = transform(cut, -1, n_fft, None, norm).transpose(-2, -1)
        found = Pair(found.real.squeeze(0), found.imag.squeeze(0)) if x.dim() == 1 else found
    else:
        outputs = n_fft // 2 + 1 if half else n_fft
        filters = constant(stft_filters(n_fft, outputs, 1 / math.sqrt(n_fft) if normalized else 1.0), x)
        if window is not None or win_length not in (None, n_fft):
            # The shape says how long a window is that is computed.
            filters = (filters * frame_window(window, n_fft, win_length, x)).reshape(2 * outputs, 1, n_fft)
        joint = torch.nn.functional.conv1d(signals, filters, stride=hop)
        joint = joint.squeeze(0) if x.dim() == 1 else joint
        found = Pair(joint.narrow(-2, 0, outputs), joint.narrow(-2, outputs, outputs))
    return found if return_complex else torch.stack((found.real, found.imag), -1)


@decomposition(torch.istft, **TRANSFORM)
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
    """
    if return_complex:
        decline("return_complex must be False, got True")
    z = as_pair(input)
    n_fft = check_length(n_fft)
    hop = n_fft // 4 if hop_length is None else hop_length
    factors = frame_window(window, n_fft, win_length, z.real)
    add = _add_transformed if n_fft > DIRECT else _add_by_convolution
    norm = "ortho" if normalized else "backward"
    total = add(z.unsqueeze(0) if z.dim() == 2 else z, n_fft, hop, factors, norm, onesided is not False)
    squares = (factors * factors).expand(1, z.shape[-1], n_fft)
    start = n_fft // 2 if center else 0
    end = -start if center and length is None else None
    output = total[:, start:end] / overlap_add(squares, hop)[:, start:end]
    if length is not None:
        output = torch.nn.functional.pad(output, (0, length))[:, :length]
    return output.squeeze(0) if z.dim() == 2 else output


def _add_transformed(z: Pair, n_fft: int, hop: int, window: Tensor, norm: str, onesided: bool) -> Tensor:
    across = z.transpose(-2, -1)
    if onesided:
        return overlap_add(irfft(across, -1, n_fft // 2 + 1, n_fft, norm) * window, hop)
    return overlap_add(fft(across, -1, n_fft, None, norm, inverse=True).real * window, hop)


def _add_by_convolution(z: Pair, n_fft: int, hop: int, window: Tensor, norm: str, onesided: bool) -> Tensor:
    spectrum = torch.cat((z.real, z.imag), -2)
    filters = constant(istft_filters(n_fft, onesided, norm), spectrum) * window
    return torch.nn.functional.conv_transpose1d(spectrum, filters, stride=hop).squeeze(1)


# Windows (https://docs.pytorch.org/docs/stable/signal.html; ATen/native/TensorFactories.cpp). A periodic window of n
# cells is the symmetric one of n + 1 cells but its last; a window of one cell is 1. Fixed lengths make constants.


def window_constant(
    length: Any, periodic: bool, symmetric: Callable[[int], npt.NDArray[Any]], options: dict[str, Any]
) -> Tensor:
    """A window from a function that computes the symmetric one of n > 1 cells.

    Raises:
        Declined: The length varies.
    """
    if type(length) is not int:
        decline("the window's length must be fixed; make the window in __init__ and keep it as a buffer")
    cells = symmetric(length + periodic)[:length] if length > 1 else np.ones(length)
    return torch.tensor(cells, dtype=options.get("dtype") or torch.get_default_dtype(), device=options.get("device"))


def window(length: Any, periodic: bool, formula: Callable[[Any, Any], Any], options: dict[str, Any]) -> Tensor:
    """A window of any length, from a function of the part of the way, 0 to 1, that a cell is at, and of cos."""
    if type(length) is int:
        wide = options.get("dtype") is torch.float64
        parts = partial(np.linspace, 0, 1, dtype=np.float64 if wide else np.float32)  # what is 0 is rounded as by torch
        return window_constant(length, periodic, lambda n: formula(parts(n), np.cos), options)
    number = torch.arange(length, device=options.get("device"))
    last = number[-1:]
    part = number / (last + int(periodic)).clamp(min=1)
    cells = torch.where(last == 0, 1.0, formula(part, torch.cos))
    return cells.to(options.get("dtype") or torch.get_default_dtype())


@decomposition(torch.bartlett_window, **WINDOW)
def bartlett_window_to_abs(window_length: Any, periodic: bool = True, **options: Any) -> Tensor:
    """Triangular window of any length.

    Math: 1 - |2 i / (n - 1) - 1| for i = 0, ..., n - 1.
    """
    return window(window_length, periodic, lambda part, cos: 1 - abs(2 * part - 1), options)


@decomposition(torch.hann_window, **WINDOW)
def hann_window_to_cos(window_length: Any, periodic: bool = True, **options: Any) -> Tensor:
    """Hann window of any length; that of stock TorchScript is 0 or NaN at length 1.

    Math: 1/2 - cos(2 pi i / (n - 1)) / 2 for i = 0, ..., n - 1.
    """
    return window(window_length, periodic, lambda part, cos: 0.5 - 0.5 * cos(2 * math.pi * part), options)


@decomposition(torch.hamming_window, **WINDOW)
def hamming_window_to_cos(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming window of any length; stock dynamo writes ONNX's, which is another.

    Math: alpha - beta cos(2 pi i / (n - 1)) for i = 0, ..., n - 1; ONNX's HammingWindow has 25 / 46 for alpha.
    """
    return window(window_length, periodic, lambda part, cos: alpha - beta * cos(2 * math.pi * part), options)


@decomposition(torch.blackman_window, **WINDOW)
def blackman_window_to_cos(window_length: Any, periodic: bool = True, **options: Any) -> Tensor:
    """Blackman window of any length.

    Math: 0.42 - cos(2 pi i / (n - 1)) / 2 + 0.08 cos(4 pi i / (n - 1)) for i = 0, ..., n - 1.
    """

    def formula(part: Any, cos: Any) -> Any:
        return 0.08 * cos(4 * math.pi * part) - 0.5 * cos(2 * math.pi * part) + 0.42  # as ATen rounds it

    return window(window_length, periodic, formula, options)


@decomposition(torch.kaiser_window, **WINDOW)
def kaiser_window_to_constant(window_length: Any, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser window; stock dynamo has no translation of it.

    Declines: a length that varies.

    Math:   I0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / I0(beta) for i = 0, ..., n - 1.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.kaiser_window.html;
            https://numpy.org/doc/stable/reference/generated/numpy.kaiser.html
    """
    return window_constant(window_length, periodic, lambda n: np.kaiser(n, beta), options)
