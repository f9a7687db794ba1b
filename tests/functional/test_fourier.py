"""Transforms of more points than one product is good for, and short-time transforms of long frames."""

import pytest
import torch
from torch_onnx_compat.functional.short_time import frames, istft, overlapped, stft

from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.fourier import fft, irfft, rfft
from torch_onnx_compat.testing import assert_same_outputs

NORMS = (None, "ortho", "forward")
WINDOW = torch.hann_window(1000)


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


@pytest.mark.parametrize(("size", "hop"), [(12, 3), (12, 8), (10, 10), (9, 4), (4, 6)])
def test_frames(size, hop):
    x = torch.randn(2, 47)
    cut = frames(x, size, hop)
    assert torch.equal(cut, x.unfold(1, size, hop))
    wanted = torch.zeros(2, (cut.shape[1] - 1) * hop + size)
    for i in range(cut.shape[1]):
        wanted[:, i * hop : i * hop + size] += cut[:, i]
    torch.testing.assert_close(overlapped(cut, hop), wanted)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("hop", "normalized"), [(None, False), (300, True)])
def test_long_frames(hop, normalized, onesided):
    x = torch.randn(2, 5000, dtype=torch.float64)
    window = torch.hann_window(1000, dtype=torch.float64)
    wanted = torch.stft(
        x, 1024, hop, 1000, window, normalized=normalized, onesided=onesided, return_complex=True, pad_mode="reflect"
    )
    found = stft(x, 1024, hop, 1000, window, "reflect", normalized, onesided)
    torch.testing.assert_close(found.tensor(), wanted)
    back = torch.istft(wanted, 1024, hop, 1000, window, normalized=normalized, onesided=onesided, length=4800)
    again = istft(Pair.of(wanted), 1024, hop, 1000, window, True, normalized, onesided, 4800)
    torch.testing.assert_close(again, back)


class Spectra(torch.nn.Module):
    def forward(self, x, y):
        z = torch.stft(x, 1024, 300, 1000, WINDOW, return_complex=True)
        return z.abs(), torch.istft(z, 1024, 300, 1000, WINDOW), torch.fft.rfft(y).abs()


def test_matches(exporter):
    samples = [(torch.randn(3, 3301), torch.randn(3, 1500))]
    dynamic = {"x": {0: "batch", 1: "length"}, "y": {0: "batch"}}
    result = assert_same_outputs(
        Spectra(), (torch.randn(2, 2600), torch.randn(2, 1500)), exporter, dynamic=dynamic, samples=samples
    )
    assert {note.entry for note in result.applied} >= {"stft_to_conv", "istft_to_conv", "rfft_to_matmul"}
    assert "Conv" not in result.nodes
