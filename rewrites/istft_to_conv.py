"""torch.istft -> a transposed convolution with windowed cosines and sines, divided by the sum of the squared windows.

Math:   torch_onnx_compat.functional.short_time: frames are transformed back, windowed once more, and added up in place.
Source: https://docs.pytorch.org/docs/stable/generated/torch.istft.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import as_pair
from torch_onnx_compat.functional.short_time import istft


@rewrite(torch.istft, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
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
    half = onesided is not False
    return istft(as_pair(input), n_fft, hop_length, win_length, window, center, normalized, half, length)
