"""Models of torchaudio, small ones of each architecture, and the transforms that stand before or behind them.

torchaudio needs the torch that it was built with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torchaudio import models, transforms

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.inputs.inputs import forward_parameters
from torch_onnx_compat.zoo.sample import SEED, Sample, Size
from torch_onnx_compat.zoo.weights import PICTURES, build_with_seed

RATE = 16000
"""Samples in a second."""

SECONDS = 0.5

_EXTRACTOR = [(32, 10, 5), (32, 3, 2), (32, 3, 2), (32, 3, 2), (32, 3, 2), (32, 2, 2), (32, 2, 2)]
"""Channels, kernel and stride of the convolutions of wav2vec 2.0, with fewer channels."""


@dataclass(frozen=True)
class _Entry:
    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]
    """Example inputs of a batch."""
    axes: Mapping[int, Mapping[int, str]]
    """Axes that may vary, by the position of the input."""
    family: str = "transform"


def names() -> list[str]:
    """Architectures as torchaudio names its modules, and transforms by the name of their class."""
    return sorted(_ENTRIES)


def family(name: str) -> str:
    """``transform``, or for a model the kind of task."""
    return _ENTRIES[name].family


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model or transform.

    Raises:
        CompatError: There is none of that name, or a size is given: sound has no height.
    """
    if name not in _ENTRIES:
        raise unknown_name("torchaudio model", name, names())
    if size:
        raise CompatError(f"torchaudio:{name}: takes sound, which has no height and width; leave --size out.")
    entry = _ENTRIES[name]
    model = build_with_seed(entry.make, entry.inputs(PICTURES))
    args = entry.inputs(1)
    parameters = [p.name for p in forward_parameters(model)]
    return Sample(model, args, dynamic={parameters[i]: dict(axes) for i, axes in entry.axes.items()})


def _sound(batch: int, *channels: int, seconds: float = SECONDS) -> Tensor:
    """Voiced noise in [-1, 1]: harmonics of a tone that falls, under noise."""
    generator = torch.Generator().manual_seed(SEED)
    time = torch.arange(int(RATE * seconds)) / RATE
    phase = 2 * torch.pi * (200 * time - 60 * time**2)
    tone = torch.stack([torch.sin(k * phase) / k for k in (1, 2, 3, 5, 8)]).sum(0)
    level = torch.rand(batch, *channels, 1, generator=generator) + 0.5
    noise = torch.randn(batch, *channels, len(time), generator=generator)
    return (0.3 * level * tone + 0.05 * noise).clamp(-1, 1)


def _features(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED))


def _power(batch: int) -> Tensor:
    """A power spectrogram (batch, 201, frames)."""
    spectrogram: Tensor = transforms.Spectrogram()(_sound(batch))
    return spectrogram


def _complex(*shape: int) -> Tensor:
    """A complex spectrogram (*shape, 201, frames)."""
    spectrogram: Tensor = transforms.Spectrogram(power=None)(_sound(*shape))
    return spectrogram


def _on(make: Callable[[], nn.Module], inputs: Callable[[int], Tensor]) -> _Entry:
    """A transform of one input, of which batch and last axis may vary."""
    return _Entry(make, lambda batch: (inputs(batch),), {0: {0: "batch", inputs(1).ndim - 1: "time"}})


def _wav2vec2(**changed: Any) -> nn.Module:
    options: dict[str, Any] = {
        "extractor_mode": "group_norm",
        "extractor_conv_layer_config": _EXTRACTOR,
        "extractor_conv_bias": False,
        "encoder_embed_dim": 64,
        "encoder_projection_dropout": 0.1,
        "encoder_pos_conv_kernel": 128,
        "encoder_pos_conv_groups": 16,
        "encoder_num_layers": 2,
        "encoder_num_heads": 4,
        "encoder_attention_dropout": 0.1,
        "encoder_ff_interm_features": 128,
        "encoder_ff_interm_dropout": 0.1,
        "encoder_dropout": 0.1,
        "encoder_layer_norm_first": False,
        "encoder_layer_drop": 0.0,
        "aux_num_out": 32,
    }
    make = models.wavlm_model if "encoder_num_buckets" in changed else models.wav2vec2_model
    model: nn.Module = make(**{**options, **changed})
    return model


def _emformer_rnnt() -> nn.Module:
    model: nn.Module = models.emformer_rnnt_model(
        input_dim=80,
        encoding_dim=64,
        num_symbols=33,
        segment_length=16,
        right_context_length=4,
        time_reduction_input_dim=32,
        time_reduction_stride=4,
        transformer_num_heads=4,
        transformer_ffn_dim=128,
        transformer_num_layers=2,
        transformer_dropout=0.1,
        transformer_activation="gelu",
        transformer_left_context_length=8,
        transformer_max_memory_size=0,
        transformer_weight_init_scale_strategy="depthwise",
        transformer_tanh_on_mem=True,
        symbol_embedding_dim=32,
        num_lstm_layers=2,
        lstm_layer_norm=True,
        lstm_layer_norm_epsilon=1e-3,
        lstm_dropout=0.3,
    )
    return model


def _tacotron2() -> nn.Module:
    model: nn.Module = models.Tacotron2(
        n_mels=20,
        n_symbol=40,
        symbol_embedding_dim=32,
        encoder_embedding_dim=32,
        decoder_rnn_dim=64,
        attention_rnn_dim=64,
        prenet_dim=16,
        postnet_embedding_dim=32,
        decoder_dropout=0.0,
    )
    return model


def _pitch_shift() -> nn.Module:
    shift: nn.Module = transforms.PitchShift(RATE, 4)
    shift(_sound(1))  # it makes its filter at the first call
    return shift


def _lengths(batch: int, longest: int) -> Tensor:
    """Lengths (batch,) of which the first is the longest."""
    return torch.tensor([longest - 3 * (i % 3) for i in range(batch)], dtype=torch.int32)


def _model(
    kind: str,
    make: Callable[[], nn.Module],
    inputs: Callable[[int], tuple[Tensor, ...]],
    axes: Mapping[int, Mapping[int, str]],
) -> _Entry:
    return _Entry(make, inputs, axes, kind)


_WAVE = {0: {0: "batch", 1: "time"}}
_BATCH_OF_TWO = {0: {0: "batch"}, 1: {0: "batch"}}

_MODELS = {
    "conformer": _model(
        "encoder",
        lambda: models.Conformer(80, num_heads=4, ffn_dim=64, num_layers=2, depthwise_conv_kernel_size=31),
        lambda batch: (_features(batch, 40, 80), _lengths(batch, 40)),
        _BATCH_OF_TWO,
    ),
    "conv_tasnet": _model(
        "separation",
        lambda: models.ConvTasNet(2, 16, 64, 3, 32, 64, msk_num_layers=4, msk_num_stacks=2),
        lambda batch: (_sound(batch, 1),),
        {0: {0: "batch", 2: "time"}},
    ),
    "deepspeech": _model(
        "recognition",
        lambda: models.DeepSpeech(40, n_hidden=64, n_class=32),
        lambda batch: (_features(batch, 1, 50, 40),),
        {0: {0: "batch", 2: "time"}},
    ),
    "emformer": _model(
        "encoder",
        lambda: models.Emformer(64, 4, 128, 2, segment_length=8, left_context_length=8, right_context_length=4),
        lambda batch: (_features(batch, 36, 64), _lengths(batch, 32)),
        _BATCH_OF_TWO,
    ),
    "emformer_rnnt": _model(
        "recognition",
        _emformer_rnnt,
        lambda batch: (
            _features(batch, 68, 80),
            _lengths(batch, 64),
            torch.arange(batch * 9, dtype=torch.int32).reshape(batch, 9) % 32,
            torch.full((batch,), 9, dtype=torch.int32),
        ),
        {i: {0: "batch"} for i in range(4)},
    ),
    "hdemucs": _model(
        "separation",
        lambda: models.HDemucs(["drums", "vocals"], channels=8, nfft=1024, depth=5),
        lambda batch: (_sound(batch, 2),),
        {0: {0: "batch"}},
    ),
    "hubert": _model("encoder", _wav2vec2, lambda batch: (_sound(batch),), _WAVE),
    "squim_objective": _model(
        "quality",
        lambda: models.squim_objective_model(32, 64, 32, 4, 32, 2, "LSTM", 31),
        lambda batch: (_sound(batch),),
        _WAVE,
    ),
    "tacotron2": _model(
        "synthesis",
        _tacotron2,
        lambda batch: (
            torch.arange(batch * 12).reshape(batch, 12) % 40,
            torch.full((batch,), 12),
            _features(batch, 20, 10),
            torch.full((batch,), 10),
        ),
        {i: {0: "batch"} for i in range(4)},
    ),
    "wav2letter": _model(
        "recognition", lambda: models.Wav2Letter(32), lambda batch: (_sound(batch, 1),), {0: {0: "batch", 2: "time"}}
    ),
    "wav2vec2": _model(
        "encoder",
        lambda: _wav2vec2(extractor_mode="layer_norm", encoder_layer_norm_first=True),
        lambda batch: (_sound(batch), _lengths(batch, int(RATE * SECONDS))),
        _BATCH_OF_TWO,
    ),
    "wavernn": _model(
        "synthesis",
        lambda: models.WaveRNN([5, 5, 8], 64, 200, n_res_block=2, n_rnn=64, n_fc=64, n_freq=40, n_hidden=32),
        lambda batch: (_sound(batch, 1)[..., : 200 * 6], _features(batch, 1, 40, 10)),
        _BATCH_OF_TWO,
    ),
    "wavlm": _model(
        "encoder",
        lambda: _wav2vec2(encoder_num_buckets=32, encoder_max_distance=64),
        lambda batch: (_sound(batch),),
        _WAVE,
    ),
}

_TRANSFORMS = {
    "AmplitudeToDB": _on(lambda: transforms.AmplitudeToDB(top_db=80.0), _power),
    "ComputeDeltas": _on(transforms.ComputeDeltas, _power),
    "Deemphasis": _on(transforms.Deemphasis, _sound),
    "FFTConvolve": _Entry(
        transforms.FFTConvolve, lambda batch: (_sound(batch), _sound(batch)[..., :300]), _BATCH_OF_TWO
    ),
    "Fade": _on(lambda: transforms.Fade(1000, 2000, "logarithmic"), _sound),
    "GriffinLim": _on(lambda: transforms.GriffinLim(n_iter=4, rand_init=False), _power),
    "InverseSpectrogram": _on(transforms.InverseSpectrogram, _complex),
    "LFCC": _on(transforms.LFCC, _sound),
    "MFCC": _on(transforms.MFCC, _sound),
    "MVDR": _Entry(
        transforms.MVDR,
        lambda batch: (_complex(batch, 3).to(torch.complex128), _features(batch, 201, 41).sigmoid().double()),
        _BATCH_OF_TWO,
    ),
    "MelScale": _on(transforms.MelScale, _power),
    "MelSpectrogram": _on(lambda: transforms.MelSpectrogram(n_fft=512, n_mels=64), _sound),
    "MuLawDecoding": _on(
        transforms.MuLawDecoding, lambda batch: torch.arange(batch * 300).reshape(batch, 300) * 7 % 256
    ),
    "MuLawEncoding": _on(transforms.MuLawEncoding, _sound),
    "PSD": _on(transforms.PSD, lambda batch: _complex(batch, 3)),
    "PitchShift": _on(_pitch_shift, _sound),
    "Preemphasis": _on(transforms.Preemphasis, _sound),
    "Resample": _on(lambda: transforms.Resample(RATE, 11025), _sound),
    "SlidingWindowCmn": _Entry(
        lambda: transforms.SlidingWindowCmn(20, 10),
        lambda batch: (_features(batch, 50, 12),),
        {0: {0: "batch", 1: "time"}},
    ),
    "SpectralCentroid": _on(lambda: transforms.SpectralCentroid(RATE), _sound),
    "Spectrogram": _on(transforms.Spectrogram, _sound),
    "Speed": _on(lambda: transforms.Speed(RATE, 0.9), _sound),
    "TimeStretch": _on(lambda: transforms.TimeStretch(fixed_rate=1.3), _complex),
    "Vol": _on(lambda: transforms.Vol(6.0, "db"), _sound),
}

_ENTRIES = {**_MODELS, **_TRANSFORMS}
