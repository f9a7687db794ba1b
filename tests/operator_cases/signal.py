"""Fourier transforms, short-time transforms, windows and padding; complex tensors live inside the models only."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases.case import Case

fft = torch.fft


def rows(*sizes: int):
    return lambda n: (torch.randn(n, *sizes),)


def parts(z):
    return torch.view_as_real(z.resolve_conj())


class FNet(nn.Module):
    """Mixes tokens by the real part of a two-dimensional transform."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)

    def forward(self, x):
        return self.norm(x + fft.fft(fft.fft(x, dim=-1), dim=-2).real), x + fft.fft2(x).real


class FNO(nn.Module):
    """Fourier neural operator in two dimensions: some of the lowest frequencies are mixed by complex weights."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 2, 2, dtype=torch.cfloat))

    def forward(self, x):
        spectrum = fft.rfft2(x)
        low = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :2, :2], self.weight)
        return fft.irfft2(F.pad(low, (0, x.shape[-1] // 2 - 1, 0, x.shape[-2] - 2)), s=(x.shape[-2], x.shape[-1]))


class GlobalFilter(nn.Module):
    """GFNet: the spectrum is multiplied by a learned one, kept as real pairs."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4, 3, 2))

    def forward(self, x):
        spectrum = fft.rfft2(x, dim=(1, 2), norm="ortho")
        return fft.irfft2(spectrum * torch.view_as_complex(self.weight), s=(6, 6), dim=(1, 2), norm="ortho")


class AFNO(nn.Module):
    """Adaptive Fourier neural operator: real and imaginary parts go through a small network, then back."""

    def forward(self, x):
        z = fft.rfft2(x, dim=(1, 2), norm="ortho")
        w = torch.linspace(-1, 1, 9).reshape(3, 3)
        real = F.relu(z.real @ w - z.imag @ w.t())
        imag = F.relu(z.imag @ w + z.real @ w.t())
        out = torch.view_as_complex(F.softshrink(torch.stack([real, imag], dim=-1), 0.01))
        return fft.irfft2(out, s=(6, 4), dim=(1, 2), norm="ortho") + x


class Spectrogram(nn.Module):
    """As torchaudio writes it, with a mel filter bank and decibels."""

    def __init__(self, power=2.0, **options):
        super().__init__()
        self.power, self.options = power, options
        self.register_buffer("window", torch.hann_window(options.get("win_length", 16)))
        self.register_buffer("bank", torch.rand(9, 5))

    def forward(self, x):
        shape = x.size()
        spectrum = torch.stft(
            x.reshape(-1, shape[-1]), 16, 4, window=self.window, return_complex=True, pad_mode="reflect", **self.options
        )
        spectrum = spectrum.reshape(shape[:-1] + spectrum.shape[-2:])
        power = spectrum.abs() if self.power == 1 else spectrum.abs().pow(self.power)
        mel = torch.matmul(power.transpose(-1, -2), self.bank).transpose(-1, -2)
        return 10 * torch.log10(torch.clamp(mel, min=1e-10))


class RoundTrip(nn.Module):
    """stft and istft."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x):
        z = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        return torch.istft(z * 2, 16, 4, window=self.window), torch.istft(z, 16, 4, window=self.window, length=30)


def waves(n):
    return (torch.randn(n, 40),)


def longer(n):
    return (torch.randn(n, 40 + 3 * n),)


HANN = torch.hann_window(16)
SHORT = torch.hamming_window(10)

CASES = [
    Case("fft.rfft", "even and odd", lambda x: (parts(fft.rfft(x)), parts(fft.rfft(x[:, :7]))), rows(8)),
    Case("fft.rfft", "n, dim", lambda x: (parts(fft.rfft(x, 12, 1)), parts(fft.rfft(x, n=3, dim=-2))), rows(8, 3)),
    Case("fft.rfft", "norm", lambda x: tuple(parts(fft.rfft(x, norm=k)) for k in ("ortho", "forward", None)), rows(8)),
    Case(
        "fft.rfft",
        "abs, angle, square",
        lambda x: (lambda z: (z.abs(), z.angle(), z.real**2 + z.imag**2))(fft.rfft(x)),
        lambda n: (torch.rand(n, 8) + torch.arange(8) ** 2,),
    ),
    Case("fft.fft", "real input", lambda x: (parts(fft.fft(x)), fft.fft(x, dim=1).imag), rows(5, 6)),
    Case(
        "fft.fft",
        "complex input",
        lambda x: (parts(fft.fft(torch.view_as_complex(x))), fft.fft(fft.fft(x), dim=1).real),
        rows(5, 2),
    ),
    Case(
        "fft.ifft",
        "",
        lambda x: (fft.ifft(fft.fft(x)).real, parts(fft.ifft(x, norm="ortho")), parts(fft.ifft(fft.fft(x), 5))),
        rows(3, 6),
    ),
    Case(
        "fft.irfft",
        "",
        lambda x: (
            fft.irfft(fft.rfft(x)),
            fft.irfft(fft.rfft(x), n=5),
            fft.irfft(fft.rfft(x), n=12, norm="ortho"),
            fft.irfft(fft.rfft(x, dim=1), dim=1, n=3),
        ),
        rows(3, 8),
    ),
    Case("fft.irfft", "imaginary first and last", lambda x: fft.irfft(torch.view_as_complex(x)), rows(5, 2)),
    Case(
        "fft.fft2",
        "",
        lambda x: (parts(fft.fft2(x)), parts(fft.fft2(x, dim=(1, 2))), fft.ifft2(fft.fft2(x)).real),
        rows(4, 5, 3),
    ),
    Case(
        "fft.rfft2",
        "",
        lambda x: (parts(fft.rfft2(x)), parts(fft.rfft2(x, dim=(1, 2), norm="ortho")), fft.rfft2(x, s=(3, 6)).abs()),
        rows(4, 5, 6),
    ),
    Case(
        "fft.irfft2",
        "",
        lambda x: (fft.irfft2(fft.rfft2(x)), fft.irfft2(fft.rfft2(x, norm="forward"), s=(4, 5), norm="forward")),
        rows(4, 5),
    ),
    Case(
        "fft.fftn",
        "",
        lambda x: (parts(fft.fftn(x, dim=(1, 2, 3))), fft.ifftn(fft.fftn(x, dim=(1, 2)), dim=(1, 2)).real),
        rows(3, 4, 2),
    ),
    Case(
        "fft.rfftn",
        "",
        lambda x: (parts(fft.rfftn(x, dim=(1, 2))), fft.irfftn(fft.rfftn(x, dim=(1, 2)), s=(3, 4), dim=(1, 2))),
        rows(3, 4),
    ),
    Case("fft.hfft", "ihfft", lambda x: (fft.hfft(fft.ihfft(x)), parts(fft.ihfft(x))), rows(8)),
    Case(
        "fft.fftshift",
        "",
        lambda x: (
            fft.fftshift(x),
            fft.ifftshift(x, dim=1),
            fft.fftshift(x, dim=(1, 2)),
            fft.fftshift(fft.fft2(x), dim=(1, 2)).abs(),
        ),
        rows(5, 4),
    ),
    Case("fft.fftfreq", "rfftfreq", lambda x: (x[:, :4] * fft.fftfreq(4), x * fft.rfftfreq(8, d=0.5)), rows(5)),
    Case(
        "fft",
        "convolution theorem",
        lambda x, k: fft.irfft(fft.rfft(x, 16) * fft.rfft(k, 16), 16)[..., :8],
        lambda n: (torch.randn(n, 8), torch.randn(8)),
    ),
    Case("fft", "autocorrelation", lambda x: fft.irfft(fft.rfft(x, 16) * fft.rfft(x, 16).conj(), 16), rows(8)),
    Case(
        "fft",
        "Hilbert envelope",
        lambda x: fft.ifft(fft.fft(x) * torch.tensor([1.0, 2, 2, 2, 1, 0, 0, 0])).abs(),
        rows(8),
    ),
    Case("FNet", "", FNet(), rows(5, 6)),
    Case("FNO", "", FNO(), rows(3, 6, 8)),
    Case("GFNet", "", GlobalFilter(), rows(6, 6, 3)),
    Case("AFNO", "", AFNO(), rows(6, 4, 3)),
    Case("stft", "return_complex", lambda x: parts(torch.stft(x, 16, 4, window=HANN, return_complex=True)), waves),
    Case(
        "stft",
        "no window, not centred",
        lambda x: parts(torch.stft(x, 16, center=False, return_complex=True, window=torch.ones(16))),
        waves,
    ),
    Case(
        "stft",
        "short window, normalised",
        lambda x: parts(torch.stft(x, 16, 5, 10, SHORT, normalized=True, return_complex=True)),
        waves,
    ),
    Case(
        "stft",
        "two-sided, constant padding",
        lambda x: parts(torch.stft(x, 16, 4, window=HANN, onesided=False, pad_mode="constant", return_complex=True)),
        waves,
    ),
    Case(
        "stft",
        "replicate padding, one wave",
        lambda x: torch.stft(x[0], 16, 4, window=HANN, pad_mode="replicate", return_complex=True).abs(),
        waves,
    ),
    Case("stft", "real", lambda x: torch.stft(x, 16, 4, window=HANN, return_complex=False), waves),
    Case("stft", "dynamic length", lambda x: torch.stft(x, 16, 4, window=HANN, return_complex=True).abs(), longer),
    Case(
        "stft",
        "window made inside",
        lambda x: torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs(),
        waves,
    ),
    Case("istft", "round trip", RoundTrip(), waves),
    Case("istft", "dynamic length", RoundTrip(), longer),
    Case("spectrogram", "mel, decibels", Spectrogram(), lambda n: (torch.randn(n, 2, 40),)),
    Case(
        "spectrogram", "magnitude, short window, normalised", Spectrogram(1.0, win_length=12, normalized=True), longer
    ),
    Case(
        "windows",
        "in forward",
        lambda x: tuple(
            x * w(8)
            for w in (
                torch.hann_window,
                torch.hamming_window,
                torch.blackman_window,
                torch.kaiser_window,
                torch.bartlett_window,
            )
        ),
        rows(8),
    ),
    Case("framing", "unfold and matmul", lambda x: (x.unfold(1, 16, 4) * HANN) @ torch.eye(16)[:, :5], waves),
    Case("framing", "conv1d", lambda x: F.conv1d(x[:, None], torch.eye(16)[:, None], stride=4), longer),
    Case(
        "pad",
        "constant",
        lambda x: (
            F.pad(x, (1, 2)),
            F.pad(x, (1, 0, 0, 2), value=2.5),
            F.pad(x, (-1, 2)),
            F.pad(x, (0, 0, -1, -1, 1, 0)),
        ),
        rows(4, 5),
    ),
    Case(
        "pad",
        "reflect, 1-D and 2-D",
        lambda x: (F.pad(x, (2, 3), "reflect"), F.pad(x[:, None], (1, 2, 3, 0), mode="reflect")),
        rows(4, 5),
    ),
    Case(
        "pad",
        "replicate",
        lambda x: (F.pad(x, (2, 6), "replicate"), F.pad(x[:, None], (1, 2, 3, 0), mode="replicate")),
        rows(4, 5),
    ),
    Case(
        "pad",
        "circular",
        lambda x: (F.pad(x, (2, 3), "circular"), F.pad(x[:, None], (1, 2, 3, 0), mode="circular")),
        rows(4, 5),
    ),
    Case(
        "pad",
        "negative, other modes",
        lambda x: (F.pad(x, (-1, 3), "reflect"), F.pad(x, (2, -1), "replicate"), F.pad(x, (-1, 2), "circular")),
        rows(4, 5),
    ),
    Case(
        "pad",
        "3-D",
        lambda x: (
            F.pad(x, (1, 2, 1, 0, 2, 1), "reflect"),
            F.pad(x, (1, 2, 1, 0, 2, 1), "replicate"),
            F.pad(x, (1, 2, 1, 0, 2, 1), "circular"),
            F.pad(x, (1, 2, 1, 0, 2, 1)),
        ),
        rows(2, 3, 4, 3),
    ),
    Case(
        "pad",
        "dynamic",
        lambda x: (
            F.pad(x, (2, 3), "reflect"),
            F.pad(x, (2, 3), "circular"),
            F.pad(x, (0, 3), "replicate"),
            F.pad(x, (-2, 1)),
        ),
        lambda n: (torch.randn(n, 3, 4 + n),),
    ),
    Case(
        "pad",
        "modules",
        lambda x: (
            nn.ReflectionPad2d(2)(x),
            nn.ReplicationPad2d((1, 0, 2, 1))(x),
            nn.ZeroPad2d(1)(x),
            nn.CircularPad2d(1)(x),
            nn.ConstantPad2d(1, 3.0)(x),
        ),
        rows(2, 4, 5),
    ),
    Case(
        "pad",
        "integers, booleans",
        lambda x: (
            F.pad(x.long(), (1, 1), value=7),
            F.pad(x > 0, (1, 1), value=True),
            F.pad(x.int(), (1, 1), "reflect"),
        ),
        rows(4, 5),
    ),
    Case("conv", "circular padding", nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), rows(2, 5, 6)),
]
