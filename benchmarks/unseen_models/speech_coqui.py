"""Speech from text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NCT, NS, NT, T12, T24, N, Part, add, channels, features, load, tokens, with_lengths

COQUI = functools.partial(add, "coqui-tts")


def _coqui(path: str, cls: str, *args: Any, **options: Any) -> Any:
    return getattr(load(f"TTS.{path}"), cls)(*args, **options)


def _vits(**options: Any) -> nn.Module:
    config = load("TTS.tts.configs.vits_config").VitsConfig()
    config.model_args = _coqui(
        "tts.models.vits",
        "VitsArgs",
        num_chars=20,
        hidden_channels=16,
        hidden_channels_ffn_text_encoder=16,
        num_heads_text_encoder=2,
        num_layers_text_encoder=1,
        num_layers_posterior_encoder=1,
        num_layers_flow=1,
        resblock_kernel_sizes_decoder=[3],
        resblock_dilation_sizes_decoder=[[1, 3, 5]],
        upsample_rates_decoder=[4, 2],
        upsample_kernel_sizes_decoder=[8, 4],
        upsample_initial_channel_decoder=16,
        inference_noise_scale=0.0,
        inference_noise_scale_dp=0.0,
        init_discriminator=False,
        **options,
    )
    config.audio.hop_length = 8
    return Part(load("TTS.tts.models.vits").Vits(config), _say)


def _say(model: Any, x: Tensor, lengths: Tensor) -> Any:
    """What `inference` gives, without its inference mode."""
    said = type(model).inference.__wrapped__(model, x, {"x_lengths": lengths, "d_vectors": None, "speaker_ids": None})
    return said["model_outputs"], said["alignments"]


def _glow() -> nn.Module:
    config = load("TTS.tts.configs.glow_tts_config").GlowTTSConfig(
        num_chars=20,
        out_channels=10,
        hidden_channels_enc=16,
        hidden_channels_dec=16,
        hidden_channels_dp=16,
        num_flow_blocks_dec=2,
        num_block_layers=1,
        inference_noise_scale=0.0,
        encoder_params={
            "kernel_size": 3,
            "dropout_p": 0.1,
            "num_layers": 1,
            "num_heads": 2,
            "hidden_channels_ffn": 16,
            "input_length": None,
        },
    )
    return Part(load("TTS.tts.models.glow_tts").GlowTTS(config), _say)


SENTENCES = with_lengths(tokens(20))
COQUI("VITS", lambda: _vits(use_sdp=False), SENTENCES, NT, N, t=T12)
COQUI("VITS, stochastic durations", lambda: _vits(use_sdp=True), SENTENCES, NT, N, t=T12)
COQUI("GlowTTS", _glow, SENTENCES, NT, N, t=T12)
TEXT = "tts.layers.vits.networks"
COQUI("VITS text encoder", lambda: _coqui(TEXT, "TextEncoder", 20, 8, 16, 16, 2, 1, 3, 0.0), SENTENCES, NT, N, t=T12)


def _coupling() -> nn.Module:
    flow = _coqui(TEXT, "ResidualCouplingBlocks", 8, 16, 3, 1, 2, num_flows=2)
    return Part(flow, lambda m, x, mask: m(x, mask, reverse=True))


def _masked(width: int, length: int = 12) -> Callable[..., tuple[Tensor, Tensor]]:
    """Draws sequences (n, width, t) and a mask of them."""

    def draw(n: int, t: int = length) -> tuple[Tensor, Tensor]:
        mask = torch.arange(t) < t - 2 * torch.arange(n)[:, None]
        return torch.randn(n, width, t) * mask[:, None], mask[:, None].float()

    return draw


COQUI("VITS flow, reverse", _coupling, _masked(8), NCT, NCT, t=T12)


def _glow_decoder(*, reverse: bool) -> nn.Module:
    decoder = _coqui("tts.layers.glow_tts.decoder", "Decoder", 8, 16, 3, 1, 2, 1)
    return Part(decoder, lambda m, x, mask: m(x, mask, reverse=reverse))


for each in (False, True):
    make = functools.partial(_glow_decoder, reverse=each)
    COQUI("GlowTTS decoder" + ", reverse" * each, make, _masked(8), NCT, NCT, t=(12, 8, 20))


def _taco(*, location: bool, **options: Any) -> nn.Module:
    settings = {"attn_win": False, "attn_norm": "softmax", "prenet_type": "original", "prenet_dropout": False}
    settings |= {"trans_agent": False, "forward_attn_mask": False, "attn_K": 4, "separate_stopnet": True}
    settings |= {"forward_attn": False, "attn_type": "original", "max_decoder_steps": 6, **options}
    decoder = _coqui("tts.layers.tacotron.tacotron2", "Decoder", 12, 5, 2, location_attn=location, **settings)
    return decoder  # type: ignore[no-any-return]


def _read_and_seen(n: int, t: int = 12, s: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(n, t, 12), torch.randn(n, s, 5), torch.arange(t) < t - 2 * torch.arange(n)[:, None]


TACOTRONS: dict[str, dict[str, Any]] = {
    "": {"location": True},
    ", forward attention": {"location": True, "forward_attn": True, "trans_agent": True},
    ", Graves attention": {"location": False, "attn_type": "graves"},
    ", dynamic convolution": {"location": False, "attn_type": "dynamic_convolution"},
}
for each, options in TACOTRONS.items():
    make = functools.partial(_taco, **options)
    COQUI(f"Tacotron2 decoder{each}", make, _read_and_seen, NT, NS, NT, t=T12, s=(6, 4, 8))


def _pitch() -> nn.Module:
    layers = {"hidden_channels_ffn": 16, "num_heads": 1, "num_layers": 1, "dropout_p": 0.1}
    config = load("TTS.tts.configs.fast_pitch_config").FastPitchConfig()
    config.model_args = _coqui(
        "tts.models.forward_tts",
        "ForwardTTSArgs",
        num_chars=20,
        out_channels=10,
        hidden_channels=16,
        use_aligner=False,
        pitch_predictor_hidden_channels=16,
        duration_predictor_hidden_channels=16,
        encoder_params=layers,
        decoder_params=layers,
    )
    return Part(load("TTS.tts.models.forward_tts").ForwardTTS(config), _say_pitched)


def _say_pitched(model: Any, x: Tensor, lengths: Tensor) -> Any:
    """What `inference` does, with lengths, for more than one sentence."""
    mask = (torch.arange(x.shape[1]) < lengths[:, None])[:, None].float()
    encoded, mask, _, _ = model._forward_encoder(x, mask, None)
    durations = model.format_durations(model.duration_predictor(encoded, mask), mask).squeeze(1)
    encoded = encoded + model._forward_pitch_predictor(encoded, mask)[0]
    return model._forward_decoder(encoded, durations, mask, durations.sum(1), g=None)


COQUI("FastPitch", _pitch, SENTENCES, NT, N, t=T12)
VOCODER = "vocoder.models"


def _hifigan() -> nn.Module:
    made: nn.Module = _coqui(
        f"{VOCODER}.hifigan_generator",
        "HifiganGenerator",
        10,
        1,
        "1",
        [[1, 3, 5]],
        [3],
        [8, 4],
        16,
        [4, 2],
        inference_padding=2,
    )
    return Part(made, lambda m, x: m(x))


def _melgan() -> nn.Module:
    options = {"base_channels": 64, "upsample_factors": (2, 2), "num_res_blocks": 2}
    model = _coqui(f"{VOCODER}.multiband_melgan_generator", "MultibandMelganGenerator", 10, 4, **options)
    return Part(model, lambda m, x: m.pqmf_synthesis(m(x)))


COQUI("coqui HiFi-GAN", _hifigan, channels(10, 12), NCT, t=T12)
COQUI("Multiband MelGAN", _melgan, channels(10, 12), NCT, t=T12)
COQUI(
    "alignment network",
    lambda: _coqui("tts.layers.generic.aligner", "AlignmentNetwork", 10, 16, 8),
    lambda n, t=24, s=12: (torch.randn(n, 10, t), torch.randn(n, 16, s)),
    NCT,
    {0: "n", 2: "s"},
    t=T24,
    s=T12,
)
COQUI(
    "XTTS perceiver",
    lambda: _coqui(
        "tts.layers.xtts.perceiver_encoder", "PerceiverResampler", dim=16, num_latents=4, dim_head=8, heads=2
    ),
    features(16),
    NT,
    t=T12,
)
COQUI(
    "ResNet speaker encoder",
    lambda: _coqui("encoder.models.resnet", "ResNetSpeakerEncoder", 16, 8, [1, 1, 1, 1], [4, 4, 8, 8], log_input=True),
    lambda n, t=40: torch.rand(n, 16, t),
    NCT,
    t=(40, 33, 56),
)
