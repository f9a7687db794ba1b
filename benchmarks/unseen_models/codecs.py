"""Vocoders, codecs, and the separation of music."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NCT, NT, T12, T24, WAVES, Part, add, channels, load, waves

# vocos


def _mdct() -> Any:
    """The transforms of vocos, which look for a window where scipy had it until 1.13."""
    signal = load("scipy.signal")
    signal.cosine = load("scipy.signal.windows").cosine
    return load("vocos.spectral_ops")


def _vocos(head: str, *, resnet: bool = False, **options: Any) -> nn.Module:
    _mdct()
    models, heads = load("vocos.models"), load("vocos.heads")
    kind = models.VocosResNetBackbone(20, 16, 2) if resnet else models.VocosBackbone(20, 16, 32, 2)
    return nn.Sequential(kind, getattr(heads, head)(16, **options))


def _mel_vocos(padding: str) -> nn.Module:
    mel = load("vocos.feature_extractors").MelSpectrogramFeatures(8000, 64, 16, 20, padding)
    return nn.Sequential(mel, _vocos("ISTFTHead", n_fft=64, hop_length=16, padding=padding))


for each in ("same", "center"):
    make = functools.partial(_vocos, "ISTFTHead", n_fft=64, hop_length=16, padding=each)
    add("vocos", f"vocos ISTFTHead {each}", make, channels(20), NCT, t=T24)
    make = functools.partial(_mel_vocos, each)
    add("vocos", f"vocos mel and back {each}", make, waves(), NT, **WAVES)
for each in ("IMDCTSymExpHead", "IMDCTCosHead"):
    make = functools.partial(_vocos, each, mdct_frame_len=32)
    add("vocos", f"vocos {each}", make, channels(20), NCT, t=T24)
add(
    "vocos",
    "vocos ResNet",
    lambda: _vocos("IMDCTSymExpHead", mdct_frame_len=32, padding="center", resnet=True),
    channels(20),
    NCT,
    t=T24,
)
add("vocos", "vocos MDCT", lambda: _mdct().MDCT(32), waves(), NT, **WAVES)


def _vocos_bandwidths() -> nn.Module:
    backbone = load("vocos.models").VocosBackbone(20, 16, 32, 2, adanorm_num_embeddings=4)
    return Part(backbone, lambda m, x: m(x, bandwidth_id=torch.tensor([2])))


add("vocos", "vocos AdaLayerNorm", _vocos_bandwidths, channels(20), NCT, t=T24)


# descript-audio-codec and encodec

DAC = {"encoder_dim": 8, "encoder_rates": [2, 4], "decoder_dim": 16, "decoder_rates": [4, 2], "n_codebooks": 3}


def _dac(call: Callable[..., Any]) -> Callable[[], nn.Module]:
    options = {**DAC, "codebook_size": 16, "codebook_dim": 4}
    return lambda: Part(load("dac.model.dac").DAC(**options), call)


def _dac_both(model: nn.Module, x: Tensor) -> Any:
    out = model(x)
    return out["audio"], out["codes"]


def _dac_decode(model: Any, codes: Tensor) -> Any:
    return model.decode(model.quantizer.from_codes(codes)[0])


add("descript-audio-codec", "DAC", _dac(_dac_both), waves(1, length=256), NCT, t=(256, 300, 141))
add(
    "descript-audio-codec",
    "DAC, fewer codebooks",
    _dac(lambda m, x: m(x, n_quantizers=2)["codes"]),
    waves(1, length=256),
    NCT,
    t=(256, 300, 141),
)
add(
    "descript-audio-codec",
    "DAC decoder",
    _dac(_dac_decode),
    lambda n, t=12: torch.randint(0, 16, (n, 3, t)),
    NCT,
    t=T12,
)


def _encodec(call: Callable[..., Any], *, causal: bool = True, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        modules, package = load("encodec.modules"), load("encodec.quantization")
        shared = {"dimension": 16, "n_filters": 4, "ratios": [4, 2], "lstm": 1, "causal": causal}
        if not causal:
            shared["norm"] = "time_group_norm"
        quantizer = package.ResidualVectorQuantizer(16, 2, 16, kmeans_init=False)
        encoder, decoder = modules.SEANetEncoder(**shared), modules.SEANetDecoder(**shared)
        model = load("encodec.model").EncodecModel(encoder, decoder, quantizer, [8.0], 8000, 1, **options)
        return Part(model, call)

    return make


CODEC = {"t": (400, 500, 317)}
add("encodec", "encodec", _encodec(lambda m, x: m(x)), waves(1, length=400), NCT, **CODEC)
add("encodec", "encodec codes", _encodec(lambda m, x: m.encode(x)[0][0]), waves(1, length=400), NCT, **CODEC)
add(
    "encodec",
    "encodec in segments",
    _encodec(lambda m, x: m(x), causal=False, normalize=True, segment=0.02, overlap=0.1),
    waves(1, length=400),
    NCT,
    **CODEC,
)
add(
    "encodec",
    "encodec LM",
    lambda: load("encodec.model").LMModel(n_q=2, card=16, dim=16, num_layers=2, num_heads=2),
    lambda n, t=12: torch.randint(0, 17, (n, 2, t)),
    NCT,
    t=T12,
)


# openunmix


def _unmix(bins: int, **options: Any) -> nn.Module:
    made: nn.Module = load("openunmix.model").OpenUnmix(bins, 2, hidden_size=16, nb_layers=2, **options)
    return made


def _separator(**options: Any) -> nn.Module:
    targets = {"drums": _unmix(33), "vocals": _unmix(33, max_bin=20)}
    made: nn.Module = load("openunmix.model").Separator(targets, n_fft=64, n_hop=16, **options)
    return made


add(
    "openunmix",
    "OpenUnmix",
    lambda: _unmix(33, max_bin=20),
    lambda n, t=24: torch.rand(n, 2, 33, t),
    {0: "n", 3: "t"},
    t=T24,
)
SEPARATORS: dict[str, dict[str, Any]] = {
    "": {"niter": 0, "wiener_win_len": None},
    ", EM": {"niter": 1, "wiener_win_len": None},
    ", windows": {"niter": 0, "wiener_win_len": 20, "residual": True, "softmask": True},
}
for each, options in SEPARATORS.items():
    make = functools.partial(_separator, **options)
    add("openunmix", f"openunmix Separator{each}", make, waves(2, length=640), NCT, t=(640, 800, 500))
