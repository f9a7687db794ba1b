"""Sound: separation, spectra, codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, Part, add, add_class, load


def _wave(channels: int) -> Callable[..., Tensor]:
    return lambda n, t=8000: torch.randn(n, channels, t)


def _demucs(module: str, cls: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(load(f"demucs.{module}"), cls)(sources=["drums", "vocals"], channels=8, **options)


def _librosa(cls: str) -> Callable[[], nn.Module]:
    return lambda: getattr(load("torchlibrosa"), cls)(n_fft=256, hop_length=64)


add("demucs", "Demucs", _demucs("demucs", "Demucs", depth=3), _wave(2), {0: "n", 2: "t"}, t=(4000, 5501, 3000))
add("torchlibrosa", "STFT", _librosa("STFT"), lambda n, t=2000: torch.randn(n, t), NT, t=(2000, 2511, 1300))
add(
    "torchlibrosa",
    "Spectrogram+Logmel",
    lambda: nn.Sequential(_librosa("Spectrogram")(), load("torchlibrosa").LogmelFilterBank(n_fft=256, n_mels=16)),
    lambda n, t=2000: torch.randn(n, t),
    NT,
    t=(2000, 2511, 1300),
)
add("demucs", "HDemucs", _demucs("hdemucs", "HDemucs", nfft=1024, depth=4), _wave(2))
add(
    "snac",
    "SNAC encoder and decoder",
    lambda: Part(
        load("snac").SNAC(
            encoder_dim=8,
            encoder_rates=[2, 4],
            decoder_dim=16,
            decoder_rates=[4, 2],
            attn_window_size=None,
            codebook_size=16,
            vq_strides=[2, 1],
            noise=False,
        ),
        lambda m, x: m(x),
    ),
    lambda n, t=256: torch.randn(n, 1, t),
    {0: "n", 2: "t"},
    t=(256, 300, 140),
)
add(
    "nnAudio",
    "MelSpectrogram",
    lambda: load("nnAudio.features").MelSpectrogram(n_fft=256, n_mels=16, hop_length=64, verbose=False),
    lambda n, t=2000: torch.randn(n, t),
    NT,
    t=(2000, 2500, 1300),
)
add(
    "nnAudio",
    "CQT1992v2",
    lambda: load("nnAudio.features").CQT1992v2(sr=8000, hop_length=128, fmin=220, n_bins=24, verbose=False),
    lambda n, t=4000: torch.randn(n, t),
    NT,
    t=(4000, 5000, 3300),
)
add_class(
    "noisereduce",
    "TorchGate",
    {"sr": 8000, "n_fft": 256},
    lambda n, t=4000: torch.randn(n, t),
    NT,
    module="noisereduce.torchgate",
    t=(4000, 5000, 3300),
)
add_class(
    "noisereduce",
    "TorchGate",
    {"sr": 8000, "n_fft": 256, "nonstationary": True},
    lambda n: torch.randn(n, 4000),
    module="noisereduce.torchgate",
    name="TorchGate, nonstationary",
)
