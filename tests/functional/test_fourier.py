"""Transforms of more points than one product is good for."""

import itertools

import pytest
import torch
from torch import fft as fft_

from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import fft, irfft, rfft
from torch_onnx_compat.functional.fourier_of_any_size import real_from_half, transform
from torch_onnx_compat.testing import assert_entry

NORMS = (None, "ortho", "forward")


def plain(x):
    return x.tensor() if isinstance(x, Pair) else x


@pytest.mark.parametrize("n", [257, 300, 509, 1021, 1030, 2042, 2048, 8299])
def test_equals_eager(n):
    x = torch.randn(2, n, 3, dtype=torch.float64)
    z = torch.complex(x, x.flip(1))
    for norm in NORMS:
        torch.testing.assert_close(plain(fft(Pair.of(z), 1, n, None, norm)), torch.fft.fft(z, dim=1, norm=norm))
        back = fft(Pair.of(z), 1, n, None, norm, inverse=True)
        torch.testing.assert_close(plain(back), torch.fft.ifft(z, dim=1, norm=norm))
        torch.testing.assert_close(plain(rfft(x, 1, n, None, norm)), torch.fft.rfft(x, dim=1, norm=norm))
        wanted = torch.fft.irfft(z, dim=1, norm=norm)
        torch.testing.assert_close(irfft(Pair.of(z), 1, n, None, norm), wanted)


def test_real_result_of_odd_length():
    z = torch.randn(2, 257, dtype=torch.complex128)
    torch.testing.assert_close(irfft(Pair.of(z), -1, 257, 513, None), torch.fft.irfft(z, 513))


@pytest.mark.parametrize("length", [300, 512, 2000])
def test_cuts_off_and_fills_up(length):
    x = torch.randn(2, 700, dtype=torch.float64)
    torch.testing.assert_close(plain(fft(x, -1, 700, length, None)), torch.fft.fft(x, length))
    torch.testing.assert_close(plain(rfft(x, -1, 700, length, None)), torch.fft.rfft(x, length))
    z = torch.fft.fft(x)
    torch.testing.assert_close(irfft(Pair.of(z), -1, 700, length, None), torch.fft.irfft(z, length))


def test_matches(exporter):
    x = torch.randn(2, 1500)
    result = assert_entry("rfft_to_matmul", lambda x: torch.fft.rfft(x).abs(), x, exporter, dynamic="batch")
    assert "Conv" not in result.nodes


@pytest.mark.parametrize("size", [1, 2, 3, 6, 9])
def test_tables_computed_from_sizes_equal_eager(size):
    z = torch.randn(2, size, 3, dtype=torch.complex128)
    x, pair = z.real.clone(), Pair.of(z)
    for n, norm, inverse in itertools.product((None, 1, 2, 4, 5, 9), (*NORMS, "backward"), (False, True)):
        whole, half, real = (fft_.ifft, fft_.ihfft, fft_.irfft) if inverse else (fft_.fft, fft_.rfft, fft_.hfft)
        torch.testing.assert_close(transform(pair, 1, n, norm, inverse=inverse).tensor(), whole(z, n, 1, norm))
        found = transform(x, 1, n, norm, inverse=inverse, half=True).tensor()
        torch.testing.assert_close(found, half(x, n, 1, norm))
        if n or size > 1:
            found = real_from_half(pair, 1, n, norm, inverse=inverse)
            torch.testing.assert_close(found, real(z, n, 1, norm))
