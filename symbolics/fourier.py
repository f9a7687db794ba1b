"""torch.fft: each transform is a product with a table of cosines and sines for each axis.

Where an axis has a fixed size, the table is in the file; a size with a prime factor above 1024 is declined. Where the
size varies, the file computes the table.

Math: torch_onnx_compat.functional.fourier, torch_onnx_compat.functional.fourier_of_any_size.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decomposition
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import (
    as_pair,
    exchange_halves,
    fft,
    fftn,
    fixed_size,
    irfft,
    irfftn,
    rfft,
    rfftn,
    signal,
)

TRANSFORM = Declaration(needed_on=("torchscript",), always=True, exactness=Exactness.ROUNDING)
"""Always: dynamo has functions of complex tensors wrong or not at all, which need pairs; and a product takes less time
than a DFT in onnxruntime (benchmarks/results/transforms.md has rfft's)."""

Length = int | None
Lengths = Sequence[int] | None
Axes = Sequence[int] | None


# One axis


@decomposition(torch.fft.fft, **TRANSFORM)
def fft_to_matmul(input: Tensor | Pair, n: Length = None, dim: int = -1, norm: str | None = None) -> Pair:
    """Spectrum of one axis, of a real or a complex tensor."""
    return fft(signal(input), dim, fixed_size(input, dim), n, norm)


@decomposition(torch.fft.ifft, **TRANSFORM)
def ifft_to_matmul(input: Tensor | Pair, n: Length = None, dim: int = -1, norm: str | None = None) -> Pair:
    """One axis from its spectrum, as a complex tensor."""
    return fft(signal(input), dim, fixed_size(input, dim), n, norm, inverse=True)


@decomposition(torch.fft.rfft, **TRANSFORM)
def rfft_to_matmul(input: Tensor, n: Length = None, dim: int = -1, norm: str | None = None) -> Pair:
    """First half of the spectrum of one real axis."""
    return rfft(signal(input), dim, fixed_size(input, dim), n, norm)


@decomposition(torch.fft.irfft, **TRANSFORM)
def irfft_to_matmul(input: Tensor | Pair, n: Length = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """One real axis from the first half of its spectrum."""
    return irfft(as_pair(signal(input)), dim, fixed_size(input, dim), n, norm)


@decomposition(torch.fft.hfft, **TRANSFORM)
def hfft_to_matmul(input: Tensor | Pair, n: Length = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Real spectrum of one axis that equals its conjugate mirror image."""
    return irfft(as_pair(signal(input)), dim, fixed_size(input, dim), n, norm, inverse=False)


@decomposition(torch.fft.ihfft, **TRANSFORM)
def ihfft_to_matmul(input: Tensor, n: Length = None, dim: int = -1, norm: str | None = None) -> Pair:
    """First half of the axis whose spectrum is real."""
    return rfft(signal(input), dim, fixed_size(input, dim), n, norm, inverse=True)


# Several axes; torch's functions of two axes differ from those of any number in their default only


@decomposition(torch.fft.fft2, **TRANSFORM)
def fft2_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Pair:
    """Spectrum of two axes, of a real or a complex tensor."""
    return fftn(input, s, dim, norm)


@decomposition(torch.fft.fftn, **TRANSFORM)
def fftn_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Pair:
    """Spectrum of several axes, of a real or a complex tensor."""
    return fftn(input, s, dim, norm)


@decomposition(torch.fft.ifft2, **TRANSFORM)
def ifft2_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Pair:
    """Two axes from their spectrum, as a complex tensor."""
    return fftn(input, s, dim, norm, inverse=True)


@decomposition(torch.fft.ifftn, **TRANSFORM)
def ifftn_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Pair:
    """Several axes from their spectrum, as a complex tensor."""
    return fftn(input, s, dim, norm, inverse=True)


@decomposition(torch.fft.rfft2, **TRANSFORM)
def rfft2_to_matmul(input: Tensor, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Pair:
    """Half of the spectrum of two axes of a real tensor."""
    return rfftn(input, s, dim, norm)


@decomposition(torch.fft.rfftn, **TRANSFORM)
def rfftn_to_matmul(input: Tensor, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Pair:
    """Half of the spectrum of several axes of a real tensor."""
    return rfftn(input, s, dim, norm)


@decomposition(torch.fft.irfft2, **TRANSFORM)
def irfft2_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """Two axes, real, from half of their spectrum."""
    return irfftn(input, s, dim, norm)


@decomposition(torch.fft.irfftn, **TRANSFORM)
def irfftn_to_matmul(input: Tensor | Pair, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """Several axes, real, from half of their spectrum."""
    return irfftn(input, s, dim, norm)


# What goes with the transforms


@decomposition(torch.fft.fftshift, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fftshift_to_cat(input: Tensor | Pair, dim: int | Sequence[int] | None = None) -> Tensor | Pair:
    """Moves frequency 0 to the middle; stock TorchScript lacks it, dynamo does not take complex ones."""
    return exchange_halves(input, dim, longer_first=False)


@decomposition(torch.fft.ifftshift, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def ifftshift_to_cat(input: Tensor | Pair, dim: int | Sequence[int] | None = None) -> Tensor | Pair:
    """Moves frequency 0 from the middle to the front; stock TorchScript lacks it, dynamo does not take complex ones."""
    return exchange_halves(input, dim, longer_first=True)


@decomposition(torch.fft.fftfreq, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def fftfreq_to_where(n: Any, d: Any = 1.0, **options: Any) -> Tensor:
    """Frequencies of fft's results; stock dynamo has no translation of it.

    Math: k / (n d) for k = 0, ..., ceil(n / 2) - 1, -floor(n / 2), ..., -1.
    """
    numbers = torch.arange(n, device=options.get("device"))
    signed = torch.where(numbers < (n + 1) // 2, numbers, numbers - n)
    return signed.to(options.get("dtype") or torch.get_default_dtype()) * (1 / (n * d))


@decomposition(torch.fft.rfftfreq, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def rfftfreq_to_arange(n: Any, d: Any = 1.0, **options: Any) -> Tensor:
    """Frequencies of rfft's results; stock dynamo has no translation of it.

    Math: k / (n d) for k = 0, ..., floor(n / 2).
    """
    dtype = options.get("dtype") or torch.get_default_dtype()
    return torch.arange(n // 2 + 1, device=options.get("device")).to(dtype) * (1 / (n * d))
