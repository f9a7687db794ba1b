"""torchaudio's models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import (
    NCT,
    NS,
    NT,
    T12,
    T24,
    WAVES,
    N,
    Part,
    add,
    add_class,
    channels,
    features,
    load,
    waves,
    with_lengths,
)

AUDIO = "torchaudio.models"
add_class(
    "torchaudio",
    "Emformer",
    {"input_dim": 16, "num_heads": 2, "ffn_dim": 32, "num_layers": 2, "segment_length": 4, "right_context_length": 2}
    | {"left_context_length": 3, "max_memory_size": 2},
    with_lengths(features(16, 22)),
    NT,
    N,
    module=AUDIO,
    t=(22, 17, 30),
)


def _emformer_step(model: Any, x: Tensor, lengths: Tensor) -> Any:
    first, _, states = model.infer(x[:, :6], lengths.clamp(max=6))
    second, _, states = model.infer(x[:, 4:10], lengths.clamp(max=6), states)
    return first, second, states


def _emformer() -> nn.Module:
    made: nn.Module = load(AUDIO).Emformer(16, 2, 32, 2, 4, right_context_length=2, left_context_length=3)
    return made


add("torchaudio", "Emformer, two steps", lambda: Part(_emformer(), _emformer_step), with_lengths(features(16)), N, N)
for each in (False, True):
    options = {"input_dim": 16, "num_heads": 2, "ffn_dim": 32, "num_layers": 2, "depthwise_conv_kernel_size": 7}
    add_class(
        "torchaudio",
        "Conformer",
        {**options, "use_group_norm": each, "convolution_first": each},
        with_lengths(features(16)),
        NT,
        N,
        module=AUDIO,
        name="torchaudio Conformer" + ", group norm" * each,
        t=T12,
    )
add_class(
    "torchaudio",
    "Wav2Letter",
    {"num_classes": 8, "input_type": "mfcc", "num_features": 13},
    channels(13, 60),
    NCT,
    module=AUDIO,
    t=(60, 81, 50),
)


def _rnnt() -> nn.Module:
    made: nn.Module = load(AUDIO).emformer_rnnt_model(
        input_dim=8,
        encoding_dim=16,
        num_symbols=20,
        segment_length=8,
        right_context_length=4,
        time_reduction_input_dim=4,
        time_reduction_stride=4,
        transformer_num_heads=2,
        transformer_ffn_dim=32,
        transformer_num_layers=2,
        transformer_dropout=0.0,
        transformer_activation="gelu",
        transformer_left_context_length=8,
        transformer_max_memory_size=0,
        transformer_weight_init_scale_strategy="depthwise",
        transformer_tanh_on_mem=True,
        symbol_embedding_dim=16,
        num_lstm_layers=2,
        lstm_layer_norm=True,
        lstm_layer_norm_epsilon=1e-3,
        lstm_dropout=0.0,
    )
    return made


def _heard_and_said(n: int, t: int = 24, s: int = 5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lengths = torch.full((n,), t, dtype=torch.int32), torch.full((n,), s, dtype=torch.int32)
    return torch.randn(n, t, 8), lengths[0], torch.randint(0, 19, (n, s), dtype=torch.int32), lengths[1]


add("torchaudio", "Emformer RNN-T", _rnnt, _heard_and_said, NT, N, NS, N, t=(24, 28, 36), s=(5, 3, 7))
add(
    "torchaudio",
    "SquimObjective",
    lambda: load(AUDIO).squim_objective_model(
        feat_dim=16, win_len=16, d_model=16, nhead=2, hidden_dim=8, num_blocks=2, rnn_type="LSTM", chunk_size=7
    ),
    waves(),
    NT,
    **WAVES,
)
SMALL_TASNET = {"enc_num_feats": 16, "msk_num_feats": 8, "msk_num_hidden_feats": 16, "msk_num_layers": 2}
SMALL_TASNET |= {"msk_num_stacks": 2}
LENGTHS = (800, 1003, 640)
add_class(
    *("torchaudio", "ConvTasNet", SMALL_TASNET, waves(1), NCT), module=AUDIO, name="torchaudio ConvTasNet", t=LENGTHS
)
add_class(
    "torchaudio",
    "DeepSpeech",
    {"n_feature": 16, "n_hidden": 16, "n_class": 8},
    lambda n, t=12: torch.randn(n, 1, t, 16),
    NCT,
    module=AUDIO,
    t=T12,
)
add_class(
    "torchaudio",
    "WaveRNN",
    {"upsample_scales": [2, 4], "n_classes": 8, "hop_length": 8, "n_res_block": 2, "n_rnn": 16, "n_fc": 16}
    | {"n_freq": 10, "n_hidden": 8, "n_output": 8},
    lambda n, t=12: (torch.randn(n, 1, 8 * (t - 4)), torch.randn(n, 1, 10, t)),
    {0: "n", 2: "w"},
    {0: "n", 3: "t"},
    module=AUDIO,
    t=T12,
)


def _wav2vec2(mode: str) -> nn.Module:
    made: nn.Module = load(AUDIO).wav2vec2_model(
        extractor_mode=mode,
        extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2), (16, 2, 2)],
        extractor_conv_bias=False,
        encoder_embed_dim=16,
        encoder_projection_dropout=0.0,
        encoder_pos_conv_kernel=16,
        encoder_pos_conv_groups=4,
        encoder_num_layers=2,
        encoder_num_heads=2,
        encoder_attention_dropout=0.0,
        encoder_ff_interm_features=32,
        encoder_ff_interm_dropout=0.0,
        encoder_dropout=0.0,
        encoder_layer_norm_first=mode == "layer_norm",
        encoder_layer_drop=0.0,
        aux_num_out=8,
    )
    return made


def _sound_with_lengths(n: int, t: int = 800) -> tuple[Tensor, Tensor]:
    return torch.randn(n, t), t - torch.arange(n) * 100


for each in ("group_norm", "layer_norm"):
    make = functools.partial(_wav2vec2, each)
    add("torchaudio", f"torchaudio wav2vec2, {each}", make, _sound_with_lengths, NT, N, **WAVES)


def _wavlm() -> nn.Module:
    made: nn.Module = load(AUDIO).wavlm_model(
        extractor_mode="group_norm",
        extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2), (16, 2, 2)],
        extractor_conv_bias=False,
        encoder_embed_dim=16,
        encoder_projection_dropout=0.0,
        encoder_pos_conv_kernel=16,
        encoder_pos_conv_groups=4,
        encoder_num_layers=2,
        encoder_num_heads=2,
        encoder_num_buckets=20,
        encoder_max_distance=50,
        encoder_attention_dropout=0.0,
        encoder_ff_interm_features=32,
        encoder_ff_interm_dropout=0.0,
        encoder_dropout=0.0,
        encoder_layer_norm_first=False,
        encoder_layer_drop=0.0,
        aux_num_out=None,
    )
    return made


add("torchaudio", "torchaudio WavLM", _wavlm, waves(), NT, **WAVES)
add(
    "torchaudio",
    "torchaudio HDemucs",
    lambda: load(AUDIO).HDemucs(["drums", "vocals"], channels=8, nfft=1024, depth=4),
    waves(2, length=3000),
    NCT,
    t=(3000, 4000, 2500),
)
TRANSFORMS: dict[str, dict[str, Any]] = {
    "GriffinLim": {"n_fft": 64, "n_iter": 4, "rand_init": False},
    "Loudness": {"sample_rate": 8000},
    "SpectralCentroid": {"sample_rate": 8000, "n_fft": 64},
    "LFCC": {"sample_rate": 8000, "n_lfcc": 8, "n_filter": 16, "speckwargs": {"n_fft": 128}},
}
DRAWS: dict[str, tuple[Callable[..., Tensor], dict[int, str], tuple[int, ...]]] = {
    "GriffinLim": (lambda n, t=24: torch.rand(n, 33, t), NCT, T24),
    "Loudness": (waves(2, length=8000), NCT, (8000, 9000, 6000)),
}
for each, options in TRANSFORMS.items():
    draw, axes, lengths = DRAWS.get(each, (waves(), NT, WAVES["t"]))
    name = f"torchaudio {each}"
    add_class("torchaudio", each, options, draw, axes, module="torchaudio.transforms", name=name, t=lengths)


def _mvdr(_: nn.Module, mixture: Tensor, speech: Tensor, noise: Tensor) -> Any:
    transforms = load("torchaudio.transforms")
    spectrum = transforms.Spectrogram(64, power=None)(mixture)
    return transforms.MVDR()(spectrum, speech, noise).abs()


def _masks(n: int, t: int = 800) -> tuple[Tensor, Tensor, Tensor]:
    frames = t // 32 + 1
    return torch.randn(n, 2, t), torch.rand(n, 33, frames), torch.rand(n, 33, frames)


NCF = {0: "n", 2: "f"}
add("torchaudio", "torchaudio MVDR", lambda: Part(nn.Identity(), _mvdr), _masks, NCT, NCF, NCF, **WAVES)
