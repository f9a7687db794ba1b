"""torch.stft -> a convolution with windowed cosines and sines.

Math:   torch_onnx_compat.functional.short_time: frame t is the signal from t * hop_length on, times the window,
        transformed.
Source: https://docs.pytorch.org/docs/stable/generated/torch.stft.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.functional.short_time import stft


@rewrite(torch.stft, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
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
    padding = pad_mode if center else None
    spectrum = stft(input, n_fft, hop_length, win_length, window, padding, normalized, onesided is not False)
    return spectrum if return_complex else torch.stack((spectrum.real, spectrum.imag), -1)
