"""speechbrain's models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NCT, NS, NT, T12, T24, N, Part, add, add_class, channels, features, load, tokens, waves


def _with_shares(draw: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Adds the share of each sequence that is valid, as speechbrain counts."""

    def both(**sizes: int) -> tuple[Tensor, Tensor]:
        drawn = draw(**sizes)
        return drawn, 1 - torch.arange(len(drawn)) * 0.25

    return both


LOBES = "speechbrain.lobes.models"
BRAIN = functools.partial(add_class, "speechbrain")


def _brain(path: str, cls: str, *args: Any, **options: Any) -> Any:
    return getattr(load(f"speechbrain.{path}"), cls)(*args, **options)


BRAIN(
    "ECAPA_TDNN",
    {"input_size": 20, "lin_neurons": 8, "channels": [16, 16, 16, 16, 48], "attention_channels": 8}
    | {"res2net_scale": 4, "se_channels": 8},
    _with_shares(features(20, 24)),
    NT,
    N,
    module=f"{LOBES}.ECAPA_TDNN",
    t=T24,
)


def _asr(**options: Any) -> nn.Module:
    """A transformer for speech recognition, called with sound and words."""
    made: nn.Module = _brain(
        "lobes.models.transformer.TransformerASR",
        "TransformerASR",
        tgt_vocab=20,
        input_size=12,
        d_model=16,
        nhead=2,
        num_encoder_layers=2,
        d_ffn=32,
        kernel_size=5,
        **options,
    )
    return made


def _sound_and_words(n: int, t: int = 12, s: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(n, t, 12), torch.randint(1, 20, (n, s)), 1 - torch.arange(n) * 0.25


RECOGNISERS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "conformer": {"attention_type": "RelPosMHAXL"},
    "branchformer": {"attention_type": "RelPosMHAXL", "csgu_linear_units": 16},
    "conformer, RoPE": {"attention_type": "RoPEMHA"},
    "conformer, hypermixing": {"attention_type": "hypermixing"},
}
for each, options in RECOGNISERS.items():
    encoder = {"encoder_module": each.split(",")[0], "causal": False, "normalize_before": True, **options}
    if each == "transformer":
        make = functools.partial(_asr, num_decoder_layers=1, **encoder)
        add("speechbrain", "TransformerASR", make, _sound_and_words, NT, NS, N, t=T12, s=(5, 3, 7))
        continue
    make = functools.partial(
        lambda options: Part(_asr(num_decoder_layers=0, **options), lambda m, x, share: m.encode(x, share)), encoder
    )
    add("speechbrain", f"TransformerASR {each}", make, _with_shares(features(12)), NT, N, t=T12)
BRAIN(
    "CRDNN",
    {"input_shape": [None, None, 20], "cnn_channels": [4, 8], "rnn_layers": 1, "rnn_neurons": 8, "dnn_neurons": 8}
    | {"time_pooling": True},
    features(20, 24),
    NT,
    module=f"{LOBES}.CRDNN",
    t=T24,
)
for each in ("layernorm", "batchnorm"):
    options = {"hidden_size": 8, "input_shape": [2, 12, 12], "normalization": each, "bidirectional": True}
    BRAIN("LiGRU", options, features(12), NT, module="speechbrain.nnet.RNN", name=f"LiGRU {each}", t=T12)
BRAIN(
    "Fbank",
    {"n_mels": 20, "deltas": True, "context": True},
    waves(length=4000),
    NT,
    module="speechbrain.lobes.features",
    t=(4000, 5000, 3000),
)
BRAIN(
    "MFCC",
    {},
    waves(length=4000),
    NT,
    module="speechbrain.lobes.features",
    name="speechbrain MFCC",
    t=(4000, 5000, 3000),
)
add(
    "speechbrain",
    "InputNormalization",
    lambda: _brain("processing.features", "InputNormalization", norm_type="sentence"),
    _with_shares(features(12)),
    NT,
    N,
    t=T12,
)
BRAIN(
    "SepformerWrapper",
    {"encoder_kernel_size": 8, "encoder_out_nchannels": 16, "masknet_chunksize": 10, "masknet_numlayers": 1}
    | {"intra_numlayers": 1, "inter_numlayers": 1, "intra_nhead": 2, "inter_nhead": 2}
    | {"intra_dffn": 16, "inter_dffn": 16},
    waves(length=400),
    NT,
    module=f"{LOBES}.dual_path",
    t=(400, 500, 330),
)


def _dual_path() -> nn.Module:
    blocks = [_brain("lobes.models.dual_path", "SBRNNBlock", 8, 8, 1) for _ in range(2)]
    made: nn.Module = _brain("lobes.models.dual_path", "Dual_Path_Model", 16, 8, *blocks, num_layers=1, K=10)
    return made


def _resepformer() -> nn.Module:
    module = "lobes.models.resepformer"
    blocks = [_brain(module, "SBTransformerBlock_wnormandskip", 1, 16, 2, d_ffn=16) for _ in range(2)]
    options = {"causal": True, "unit": 16, "segment_size": 10, "layer": 2, "mem_type": "av"}
    made: nn.Module = _brain(
        module, "ResourceEfficientSeparator", 16, **options, seg_model=blocks[0], mem_model=blocks[1]
    )
    return made


add("speechbrain", "Dual_Path_Model, RNN", _dual_path, channels(16, 50), NCT, t=(50, 41, 66))
add("speechbrain", "RE-SepFormer", _resepformer, channels(16, 50), NCT, t=(50, 41, 66))


def _tasnet(*, causal: bool) -> nn.Module:
    norm = "cLN" if causal else "gLN"
    made: nn.Module = _brain("lobes.models.conv_tasnet", "MaskNet", 8, 8, 8, 3, 2, 1, 2, norm_type=norm, causal=causal)
    return made


for each in (False, True):
    name = "speechbrain Conv-TasNet" + ", causal" * each
    add("speechbrain", name, functools.partial(_tasnet, causal=each), channels(8), NCT, t=T24)


def _permutation_loss(_: nn.Module, one: Tensor, other: Tensor) -> Any:
    return load("speechbrain.nnet.losses").get_si_snr_with_pitwrapper(one, other)


def _two_sources(n: int, t: int = 100) -> tuple[Tensor, Tensor]:
    source = torch.randn(n, t, 2)
    return source, source.flip(-1) + torch.randn(n, t, 2)


add(
    "speechbrain",
    "permutation-invariant loss",
    lambda: Part(nn.Identity(), _permutation_loss),
    _two_sources,
    NT,
    NT,
    t=(100, 80, 120),
)
GENERATOR = {"input_size": 17, "num_layers": 1}
BRAIN("EnhancementGenerator", GENERATOR, _with_shares(features(17)), NT, N, module=f"{LOBES}.MetricGAN", t=T12)


def _attentional(kind: str) -> nn.Module:
    sizes = {"hidden_size": 7, "attn_dim": 5, "num_layers": 1, "enc_dim": 12, "input_size": 6}
    options = {"channels": 4, "kernel_size": 5} if kind == "location" else {}
    made: nn.Module = _brain("nnet.RNN", "AttentionalRNNDecoder", "gru", kind, **sizes, **options)
    return made


def _words_and_sound(n: int, s: int = 5, t: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(n, s, 6), torch.randn(n, t, 12), 1 - torch.arange(n) * 0.25


for each in ("content", "location"):
    make = functools.partial(_attentional, each)
    add("speechbrain", f"attentional decoder, {each}", make, _words_and_sound, NS, NT, N, t=T12, s=(5, 3, 7))


def _fastspeech() -> nn.Module:
    made: nn.Module = _brain(
        "lobes.models.FastSpeech2",
        "FastSpeech2",
        enc_num_layers=1,
        enc_num_head=2,
        enc_d_model=16,
        enc_ffn_dim=16,
        enc_k_dim=16,
        enc_v_dim=16,
        enc_dropout=0.0,
        dec_num_layers=1,
        dec_num_head=2,
        dec_d_model=16,
        dec_ffn_dim=16,
        dec_k_dim=16,
        dec_v_dim=16,
        dec_dropout=0.0,
        normalize_before=False,
        ffn_type="1dcnn",
        ffn_cnn_kernel_size_list=[3, 1],
        n_char=20,
        n_mels=10,
        postnet_embedding_dim=16,
        postnet_kernel_size=5,
        postnet_n_convolutions=2,
        postnet_dropout=0.0,
        padding_idx=0,
        dur_pred_kernel_size=3,
        pitch_pred_kernel_size=3,
        energy_pred_kernel_size=3,
        variance_predictor_dropout=0.0,
    )
    with torch.no_grad():
        made.durPred.linear.w.bias += 1  # type: ignore[union-attr,operator]
    return made


def _durations(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randint(1, 20, (n, t)), torch.randint(1, 4, (n, t))


add("speechbrain", "FastSpeech2", lambda: Part(_fastspeech(), lambda m, x, d: m(x, d)[:5]), _durations, NT, NT, t=T12)
add(
    "speechbrain",
    "FastSpeech2, its own durations",
    lambda: Part(_fastspeech(), lambda m, x: m(x)[:5]),
    tokens(20),
    NT,
    t=T12,
)
