"""Models of packages that nobody had in mind when export_compat was made, in small configurations.

A model is made with random weights, and says how to draw its arguments. `n` is the batch; of every other dynamic size
the first value is the example's, the others are for the judge. Packages are imported by the function that uses them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

MODELS: list[Unseen] = []
"""All models, in the order in which they are measured."""


@dataclass(frozen=True)
class Unseen:
    """A model with its inputs."""

    name: str
    package: str
    """Its distribution's name."""
    make: Callable[[], nn.Module]
    inputs: Callable[..., Any]
    """Arguments of the model for sizes by name: `n`, and those of `sizes`."""
    axes: Sequence[Mapping[int, str]]
    """Dynamic axes of each tensor."""
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Dynamic sizes but the batch: the example's, then those of the judge."""

    def example(self) -> dict[str, int]:
        """The sizes of the example."""
        return {"n": 2} | {name: values[0] for name, values in self.sizes.items()}

    def draw(self, seed: int, **sizes: int) -> tuple[Any, ...]:
        """Arguments of these sizes."""
        torch.manual_seed(seed)
        args = self.inputs(**sizes)
        return args if isinstance(args, tuple) else (args,)


def add(
    package: str,
    name: str,
    make: Callable[[], nn.Module],
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    **sizes: Sequence[int],
) -> None:
    """Adds a model; without axes, axis 0 of the one tensor is the batch."""
    MODELS.append(Unseen(name, package, make, inputs, axes or ({0: "n"},), sizes))


class Part(nn.Module):
    """A module of which a method is called, or results or arguments are picked."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, *args: Any) -> Any:
        return self.call(self.module, *args)


def image(size: int = 32, channels: int = 3) -> Callable[..., Tensor]:
    """Draws pictures (n, channels, h, w), of a fixed size if none is given."""
    return lambda n, h=size, w=size: torch.randn(n, channels, h, w)


def tokens(vocabulary: int, length: int = 12) -> Callable[..., Tensor]:
    """Draws token numbers (n, t)."""
    return lambda n, t=length: torch.randint(1, vocabulary, (n, t))


def features(width: int, length: int = 12) -> Callable[..., Tensor]:
    """Draws sequences (n, t, width)."""
    return lambda n, t=length: torch.randn(n, t, width)


N, NT, NHW = {0: "n"}, {0: "n", 1: "t"}, {0: "n", 2: "h", 3: "w"}
T12 = (12, 7, 19)


def _module(name: str) -> types.ModuleType:
    import importlib

    return importlib.import_module(name)


# Sound


def _wave(channels: int) -> Callable[..., Tensor]:
    return lambda n, t=8000: torch.randn(n, channels, t)


def _demucs(module: str, cls: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(_module(f"demucs.{module}"), cls)(sources=["drums", "vocals"], channels=8, **options)


add("demucs", "Demucs", _demucs("demucs", "Demucs", depth=3), _wave(2), {0: "n", 2: "t"}, t=(4000, 5501, 3000))


def _librosa(cls: str) -> Callable[[], nn.Module]:
    return lambda: getattr(_module("torchlibrosa"), cls)(n_fft=256, hop_length=64)


add("torchlibrosa", "STFT", _librosa("STFT"), lambda n, t=2000: torch.randn(n, t), NT, t=(2000, 2511, 1300))
add(
    "torchlibrosa",
    "Spectrogram+Logmel",
    lambda: nn.Sequential(_librosa("Spectrogram")(), _module("torchlibrosa").LogmelFilterBank(n_fft=256, n_mels=16)),
    lambda n, t=2000: torch.randn(n, t),
    NT,
    t=(2000, 2511, 1300),
)

# Sequences


def _after_a_call(model: nn.Module, *args: Tensor) -> nn.Module:
    """A model that draws random numbers for its tables when it is called first, as it is from then on."""
    with torch.no_grad():
        model.eval()(*args)
    return model


add(
    "local-attention",
    "LocalTransformer",
    lambda: _module("local_attention").LocalTransformer(
        num_tokens=50, max_seq_len=64, dim=32, depth=2, local_attn_window_size=8, heads=2, dim_head=16
    ),
    tokens(50),
    NT,
    t=(24, 32, 17),
)
add(
    "routing-transformer",
    "RoutingTransformerLM",
    lambda: _after_a_call(
        Part(
            _module("routing_transformer").RoutingTransformerLM(
                50, 32, 2, 64, heads=4, dim_head=8, window_size=8, n_local_attn_heads=2
            ),
            lambda m, x: m(x)[0],
        ),
        tokens(50, 32)(2),
    ),
    tokens(50, 32),
)
add(
    "reformer-pytorch",
    "ReformerLM full attention",
    lambda: _module("reformer_pytorch").ReformerLM(
        50, 32, 2, 64, heads=2, dim_head=16, bucket_size=4, full_attn_thres=64, ff_chunks=2
    ),
    tokens(50, 16),
)
add(
    "sinkhorn-transformer",
    "SinkhornTransformerLM",
    lambda: _module("sinkhorn_transformer").SinkhornTransformerLM(50, 32, 64, 2, heads=2, bucket_size=8),
    tokens(50, 64),
)
add(
    "nystrom-attention",
    "Nystromformer",
    lambda: _module("nystrom_attention").Nystromformer(dim=32, depth=2, dim_head=8, heads=2, num_landmarks=4),
    features(32),
    NT,
    t=(16, 32, 13),
)
add(
    "memory-efficient-attention-pytorch",
    "Attention, chunked",
    lambda: _module("memory_efficient_attention_pytorch").Attention(
        dim=32, heads=2, dim_head=16, causal=True, memory_efficient=True, q_bucket_size=4, k_bucket_size=8
    ),
    features(32, 16),
)
add("mega-pytorch", "Mega", lambda: _module("mega_pytorch").Mega(dim=32, num_tokens=50, depth=2), tokens(50), NT, t=T12)
add(
    "g-mlp-pytorch",
    "gMLP",
    lambda: _module("g_mlp_pytorch").gMLP(num_tokens=50, dim=32, depth=2, seq_len=16),
    tokens(50, 16),
)
add(
    "g-mlp-pytorch",
    "gMLP, causal and circulant",
    lambda: _module("g_mlp_pytorch").gMLP(
        dim=32, depth=2, seq_len=16, causal=True, circulant_matrix=True, heads=2, attn_dim=8
    ),
    features(32, 16),
)

# Pictures

add(
    "swin-transformer-pytorch",
    "SwinTransformer",
    lambda: _module("swin_transformer_pytorch").SwinTransformer(
        hidden_dim=16, layers=(2, 2, 2, 2), heads=(1, 2, 2, 2), head_dim=8, num_classes=10, window_size=2
    ),
    image(64),
    NHW,
    h=(64, 128, 64),
    w=(64, 64, 128),
)
add(
    "mlp-mixer-pytorch",
    "MLPMixer",
    lambda: _module("mlp_mixer_pytorch").MLPMixer(
        image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=10
    ),
    image(),
)
add(
    "g-mlp-pytorch",
    "gMLPVision",
    lambda: _module("g_mlp_pytorch").gMLPVision(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2),
    image(),
)
add(
    "halonet-pytorch",
    "HaloAttention",
    lambda: _module("halonet_pytorch").HaloAttention(dim=16, block_size=4, halo_size=2, dim_head=8, heads=2),
    image(16, 16),
    NHW,
    h=(16, 24, 8),
    w=(16, 8, 20),
)
add(
    "bottleneck-transformer-pytorch",
    "BottleStack",
    lambda: _module("bottleneck_transformer_pytorch").BottleStack(
        dim=16, fmap_size=16, dim_out=32, heads=2, dim_head=8, rel_pos_emb=True
    ),
    image(16, 16),
)
add(
    "timesformer-pytorch",
    "TimeSformer",
    lambda: _module("timesformer_pytorch").TimeSformer(
        dim=32, image_size=32, patch_size=8, num_frames=4, num_classes=10, depth=2, heads=2, dim_head=16
    ),
    lambda n: torch.randn(n, 4, 3, 32, 32),
)
add(
    "stam-pytorch",
    "STAM",
    lambda: _module("stam_pytorch").STAM(
        dim=32,
        image_size=32,
        patch_size=8,
        num_frames=4,
        num_classes=10,
        space_depth=2,
        space_heads=2,
        space_mlp_dim=32,
        time_depth=1,
        time_heads=2,
        time_mlp_dim=32,
    ),
    lambda n: torch.randn(n, 4, 3, 32, 32),
)
add(
    "glom-pytorch",
    "Glom",
    lambda: _module("glom_pytorch").Glom(dim=16, levels=3, image_size=32, patch_size=8),
    image(),
)
add(
    "x-clip",
    "CLIP",
    lambda: _module("x_clip").CLIP(
        dim_text=32,
        dim_image=32,
        dim_latent=16,
        num_text_tokens=50,
        text_enc_depth=1,
        text_seq_len=12,
        text_heads=2,
        visual_enc_depth=1,
        visual_heads=2,
        visual_image_size=32,
        visual_patch_size=8,
        visual_patch_dropout=0.0,
    ),
    lambda n: (tokens(50)(n), image()(n)),
    N,
    N,
)


def _coca() -> nn.Module:
    return _module("coca_pytorch").CoCa(
        dim=32, num_tokens=50, unimodal_depth=1, multimodal_depth=1, image_dim=24, num_img_queries=8, heads=2
    )


add(
    "CoCa-pytorch",
    "CoCa",
    lambda: Part(_coca(), lambda m, text, image: m(text, image_tokens=image)),
    lambda n, t=12, s=9: (tokens(50)(n, t), torch.randn(n, s, 24)),
    NT,
    {0: "n", 1: "s"},
    t=T12,
    s=(9, 12, 5),
)
add(
    "denoising-diffusion-pytorch",
    "Unet",
    lambda: _module("denoising_diffusion_pytorch").Unet(dim=16, dim_mults=(1, 2), attn_heads=2),
    lambda n, h=32, w=32: (torch.randn(n, 3, h, w), torch.rand(n) * 100),
    NHW,
    N,
    h=(32, 48, 30),
    w=(32, 30, 40),
)
add(
    "denoising-diffusion-pytorch",
    "Unet1D",
    lambda: _module("denoising_diffusion_pytorch").Unet1D(
        dim=16, dim_mults=(1, 2), channels=4, learned_sinusoidal_cond=True
    ),
    lambda n, t=32: (torch.randn(n, 4, t), torch.rand(n) * 100),
    {0: "n", 2: "t"},
    N,
    t=(32, 48, 30),
)
add(
    "denoising-diffusion-pytorch",
    "KarrasUnet",
    lambda: _module("denoising_diffusion_pytorch").KarrasUnet(
        image_size=32, dim=16, dim_max=32, num_downsamples=2, num_blocks_per_stage=1, attn_dim_head=8
    ),
    lambda n: (torch.randn(n, 4, 32, 32), torch.rand(n)),
    N,
    N,
)
add(
    "lpips",
    "LPIPS alex",
    lambda: _module("lpips").LPIPS(pretrained=False, pnet_rand=True, net="alex", verbose=False),
    lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w)),
    NHW,
    NHW,
    h=(64, 80, 71),
    w=(64, 72, 95),
)
add(
    "lpips",
    "LPIPS squeeze, spatial",
    lambda: _module("lpips").LPIPS(pretrained=False, pnet_rand=True, net="squeeze", spatial=True, verbose=False),
    lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w)),
    NHW,
    NHW,
    h=(64, 80, 71),
    w=(64, 72, 95),
)


def _piq(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(_module("piq"), name)(reduction="none", **options)


_PAIR = lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w))  # noqa: E731
add("piq", "SSIMLoss", _piq("SSIMLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "GMSDLoss", _piq("GMSDLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "VIFLoss", _piq("VIFLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "HaarPSILoss", _piq("HaarPSILoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "MDSILoss", _piq("MDSILoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))

# Separation of sound, which takes minutes

add("demucs", "HDemucs", _demucs("hdemucs", "HDemucs", nfft=1024, depth=4), _wave(2))

# Classes made from keywords


def _add(
    package: str,
    cls: str,
    options: dict[str, Any],
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    module: str = "",
    name: str = "",
    **sizes: Sequence[int],
) -> None:
    """Adds a class that is made from keywords alone."""
    where = module or package.replace("-", "_")
    add(package, name or cls, lambda: getattr(_module(where), cls)(**options), inputs, *axes, **sizes)


_add("ncps", "CfC", {"input_size": 4, "units": 8}, features(4, 5), module="ncps.torch")
_add("ncps", "LTC", {"input_size": 4, "units": 8, "ode_unfolds": 2}, features(4, 3), module="ncps.torch")
_add(
    "ncps",
    "CfC",
    {"input_size": 4, "units": 8, "mode": "pure"},
    features(4, 5),
    NT,
    module="ncps.torch",
    name="CfC, any length",
    t=(5, 3, 8),
)
_add(
    "siren-pytorch", "SirenNet", {"dim_in": 2, "dim_hidden": 16, "dim_out": 3, "num_layers": 3}, features(2), NT, t=T12
)
add(
    "siren-pytorch",
    "SirenWrapper",
    lambda: Part(
        _module("siren_pytorch").SirenWrapper(
            _module("siren_pytorch").SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=2),
            latent_dim=8,
            image_width=8,
            image_height=6,
        ),
        lambda m, latent: m(latent=latent),
    ),
    lambda n: torch.randn(8),
    {},
)
add(
    "fair-esm",
    "ESM2",
    lambda: Part(
        _module("esm").ESM2(num_layers=2, embed_dim=32, attention_heads=4),
        lambda m, x: m(x, repr_layers=[1], need_head_weights=True, return_contacts=True),
    ),
    tokens(30),
    NT,
    t=T12,
)
add(
    "fair-esm",
    "ESM2, padded",
    lambda: Part(_module("esm").ESM2(num_layers=2, embed_dim=32, attention_heads=4), lambda m, x: m(x)["logits"]),
    lambda n, t=12: torch.randint(0, 4, (n, t)) * 8 + 1,
    NT,
    t=T12,
)
add(
    "snac",
    "SNAC encoder and decoder",
    lambda: Part(
        _module("snac").SNAC(
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
    lambda: _module("nnAudio.features").MelSpectrogram(n_fft=256, n_mels=16, hop_length=64, verbose=False),
    lambda n, t=2000: torch.randn(n, t),
    NT,
    t=(2000, 2500, 1300),
)
add(
    "nnAudio",
    "CQT1992v2",
    lambda: _module("nnAudio.features").CQT1992v2(sr=8000, hop_length=128, fmin=220, n_bins=24, verbose=False),
    lambda n, t=4000: torch.randn(n, t),
    NT,
    t=(4000, 5000, 3300),
)
add(
    "torchxrayvision",
    "DenseNet",
    lambda: _module("torchxrayvision.models").DenseNet(
        growth_rate=8, block_config=(2, 2), num_init_features=8, apply_sigmoid=True
    ),
    image(64, 1),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
add(
    "geffnet",
    "mixnet_s",
    lambda: _module("geffnet").create_model("mixnet_s", num_classes=10),
    image(64),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
add(
    "geffnet",
    "tf_efficientnet_es",
    lambda: _module("geffnet").create_model("tf_efficientnet_es", num_classes=10),
    image(64),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
_add(
    "linear-attention-transformer",
    "LinearAttentionTransformerLM",
    {
        "num_tokens": 50,
        "dim": 32,
        "depth": 1,
        "max_seq_len": 64,
        "heads": 4,
        "n_local_attn_heads": 2,
        "local_attn_window_size": 8,
        "causal": True,
        "blindspot_size": 4,
    },
    tokens(50, 32),
    NT,
    t=(32, 64, 16),
)
_add(
    "gateloop-transformer",
    "Transformer",
    {"dim": 32, "num_tokens": 50, "depth": 2, "heads": 2, "dim_head": 16, "use_gate_looped_attn": True},
    tokens(50),
    NT,
    t=T12,
)
_add(
    "noisereduce",
    "TorchGate",
    {"sr": 8000, "n_fft": 256},
    lambda n, t=4000: torch.randn(n, t),
    NT,
    module="noisereduce.torchgate",
    t=(4000, 5000, 3300),
)
_add(
    "noisereduce",
    "TorchGate",
    {"sr": 8000, "n_fft": 256, "nonstationary": True},
    lambda n: torch.randn(n, 4000),
    module="noisereduce.torchgate",
    name="TorchGate, nonstationary",
)
_add("entmax", "Entmax15", {"dim": -1}, features(9), NT, t=T12)
_add("entmax", "Sparsemax", {"dim": 1, "k": 4}, features(9, 12), N, module="entmax")
_add(
    "pytorch-wavelets",
    "DWTForward",
    {"J": 2, "wave": "db3", "mode": "symmetric"},
    image(32, 2),
    NHW,
    h=(32, 45, 24),
    w=(32, 24, 51),
)
add(
    "pytorch-wavelets",
    "DWTForward and DWTInverse",
    lambda: Part(
        nn.ModuleList(
            [
                _module("pytorch_wavelets").DWTForward(J=2, wave="haar", mode="zero"),
                _module("pytorch_wavelets").DWTInverse(wave="haar", mode="zero"),
            ]
        ),
        lambda m, x: m[1](m[0](x)),
    ),
    image(32, 2),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
add(
    "pytorch-wavelets",
    "DTCWTForward",
    lambda: _module("pytorch_wavelets").DTCWTForward(J=2),
    image(32, 2),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
_add(
    "block-recurrent-transformer-pytorch",
    "BlockRecurrentTransformer",
    {
        "num_tokens": 50,
        "dim": 32,
        "depth": 2,
        "dim_head": 8,
        "heads": 2,
        "max_seq_len": 32,
        "block_width": 8,
        "num_state_vectors": 8,
        "recurrent_layers": (1,),
    },
    tokens(50, 16),
)
_add(
    "x-unet",
    "XUnet",
    {
        "dim": 16,
        "dim_mults": (1, 2),
        "num_blocks_per_stage": (1, 1),
        "num_self_attn_per_stage": (0, 1),
        "nested_unet_depths": (1, 0),
        "attn_heads": 2,
        "attn_dim_head": 8,
    },
    image(32),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
_add("soft-moe-pytorch", "SoftMoE", {"dim": 16, "seq_len": 12, "num_experts": 3}, features(16), NT, t=T12)
_add("st-moe-pytorch", "MoE", {"dim": 16, "num_experts": 4}, features(16), name="MoE")
_add(
    "uformer-pytorch",
    "Uformer",
    {"dim": 8, "stages": 2, "num_blocks": 1, "window_size": 4, "dim_head": 8, "heads": 2},
    image(32),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
_add(
    "deformable-attention",
    "DeformableAttention",
    {"dim": 16, "dim_head": 8, "heads": 2},
    image(16, 16),
    NHW,
    h=(16, 24, 20),
    w=(16, 32, 12),
)
_add(
    "res-mlp-pytorch", "ResMLP", {"image_size": 32, "patch_size": 8, "dim": 16, "depth": 2, "num_classes": 10}, image()
)
_add(
    "bidirectional-cross-attention",
    "BidirectionalCrossAttention",
    {"dim": 16, "heads": 2, "dim_head": 8, "context_dim": 12},
    lambda n, t=12, s=9: (torch.randn(n, t, 16), torch.randn(n, s, 12)),
    NT,
    {0: "n", 1: "s"},
    t=T12,
    s=(9, 12, 5),
)
_add(
    "recurrent-memory-transformer-pytorch",
    "RecurrentMemoryTransformer",
    {"dim": 32, "num_tokens": 50, "depth": 2, "num_memory_tokens": 4, "seq_len": 16, "heads": 2, "dim_head": 8},
    tokens(50, 16),
)
_add(
    "simple-hierarchical-transformer",
    "HierarchicalTransformer",
    {
        "num_tokens": 50,
        "dim": 16,
        "depth": 2,
        "seq_len": 32,
        "heads": 2,
        "dim_head": 8,
        "hierarchies": (1, 2),
        "window_sizes": (8, None),
    },
    tokens(50, 16),
)
add(
    "invariant-point-attention",
    "InvariantPointAttention",
    lambda: Part(
        _module("invariant_point_attention").InvariantPointAttention(dim=16, heads=2, require_pairwise_repr=False),
        lambda m, x, rotations, moves: m(x, rotations=rotations, translations=moves),
    ),
    lambda n, t=12: (
        torch.randn(n, t, 16),
        torch.linalg.qr(torch.randn(n, t, 3, 3))[0].contiguous(),
        torch.randn(n, t, 3),
    ),
    NT,
    NT,
    NT,
    t=T12,
)
_add(
    "feedback-transformer-pytorch",
    "FeedbackTransformer",
    {"num_tokens": 50, "dim": 16, "depth": 1, "mem_len": 8, "seq_len": 2, "heads": 2, "dim_head": 8},
    tokens(50, 6),
)
_add(
    "fast-transformer-pytorch",
    "FastTransformer",
    {"num_tokens": 50, "dim": 16, "depth": 2, "max_seq_len": 32, "absolute_pos_emb": True, "heads": 2},
    lambda n, t=12: (tokens(50)(n, t), torch.rand(n, t) > 0.2),
    NT,
    NT,
    t=T12,
)
_add(
    "charformer-pytorch",
    "GBST",
    {"num_tokens": 50, "dim": 16, "max_block_size": 4, "downsample_factor": 4},
    tokens(50, 16),
    NT,
    t=(16, 24, 13),
)
_add(
    "h-transformer-1d",
    "HTransformer1D",
    {
        "num_tokens": 50,
        "dim": 16,
        "depth": 1,
        "max_seq_len": 64,
        "heads": 2,
        "dim_head": 8,
        "block_size": 8,
        "causal": False,
    },
    tokens(50, 32),
    NT,
    t=(32, 16, 24),
)
_add(
    "long-short-transformer",
    "LongShortTransformer",
    {
        "num_tokens": 50,
        "dim": 16,
        "depth": 1,
        "max_seq_len": 32,
        "window_size": 8,
        "heads": 2,
        "dim_head": 8,
        "r": 4,
        "causal": False,
    },
    tokens(50, 32),
)
_add(
    "taylor-series-linear-attention",
    "TaylorSeriesLinearAttn",
    {"dim": 16, "heads": 2, "dim_head": 4},
    features(16),
    NT,
    t=T12,
)
_add(
    "iTransformer",
    "iTransformer",
    {
        "num_variates": 5,
        "lookback_len": 16,
        "depth": 1,
        "dim": 16,
        "heads": 2,
        "dim_head": 8,
        "pred_length": (4, 8),
        "use_reversible_instance_norm": True,
    },
    features(5, 16),
)
_add(
    "transnetv2-pytorch",
    "TransNetV2",
    {"F": 4, "L": 2, "S": 1, "D": 16, "device": "cpu"},
    lambda n: torch.randint(0, 255, (n, 8, 27, 48, 3), dtype=torch.uint8),
)
add(
    "python-doctr",
    "crnn_mobilenet_v3_small",
    lambda: Part(
        _module("doctr.models.recognition").crnn_mobilenet_v3_small(pretrained=False),
        lambda m, x: m(x, return_model_output=True)["out_map"],
    ),
    lambda n, w=128: torch.randn(n, 3, 32, w),
    {0: "n", 3: "w"},
    w=(128, 96, 160),
)
add(
    "python-doctr",
    "db_mobilenet_v3_large",
    lambda: Part(
        _module("doctr.models.detection").db_mobilenet_v3_large(pretrained=False),
        lambda m, x: m(x, return_model_output=True)["out_map"],
    ),
    image(64),
    NHW,
    h=(64, 128, 96),
    w=(64, 96, 160),
)
add(
    "resnest",
    "resnest50 head",
    lambda: _module("resnest.torch.resnet").ResNet(
        _module("resnest.torch.resnet").Bottleneck,
        [1, 1, 1, 1],
        radix=2,
        groups=1,
        bottleneck_width=16,
        num_classes=10,
        deep_stem=True,
        stem_width=8,
        avg_down=True,
    ),
    image(64),
    NHW,
    h=(64, 96, 80),
    w=(64, 72, 95),
)
add(
    "pretrainedmodels",
    "nasnetamobile",
    lambda: _module("pretrainedmodels").nasnetamobile(num_classes=10, pretrained=None),
    image(224),
)
add(
    "pretrainedmodels",
    "dpn68",
    lambda: _module("pretrainedmodels").dpn68(num_classes=10, pretrained=None),
    image(224),
    NHW,
    h=(224, 256, 231),
    w=(224, 240, 224),
)
add(
    "pretrainedmodels",
    "bninception",
    lambda: _module("pretrainedmodels").bninception(num_classes=10, pretrained=None),
    image(224),
)
add(
    "lightly",
    "MAEDecoder",
    lambda: _module("lightly.models.modules").MAEDecoder(17, 1, 2, 16, 16, 32, 12),
    features(16, 17),
)
add(
    "lightly",
    "SimCLR head",
    lambda: nn.Sequential(
        _module("lightly.models.modules.heads").SimCLRProjectionHead(16, 16, 8),
        _module("lightly.models.modules.heads").SwaVPrototypes(8, 5),
    ),
    lambda n: torch.randn(n, 16),
)
add(
    "neuraloperator",
    "FNO 2d",
    lambda: _module("neuralop.models").FNO(
        n_modes=(6, 6), in_channels=2, out_channels=1, hidden_channels=8, n_layers=2
    ),
    image(16, 2),
    NHW,
    h=(16, 24, 20),
    w=(16, 32, 18),
)
add(
    "neuraloperator",
    "FNO 1d",
    lambda: _module("neuralop.models").FNO(
        n_modes=(6,), in_channels=2, out_channels=1, hidden_channels=8, n_layers=2, positional_embedding=None
    ),
    lambda n, t=16: torch.randn(n, 2, t),
    {0: "n", 2: "t"},
    t=(16, 24, 32),
)
add(
    "egnn-pytorch",
    "EGNN",
    lambda: _module("egnn_pytorch").EGNN(dim=8, edge_dim=3, fourier_features=2),
    lambda n, t=6: (torch.randn(n, t, 8), torch.randn(n, t, 3), torch.randn(n, t, t, 3)),
    NT,
    NT,
    {0: "n", 1: "t", 2: "t"},
    t=(6, 4, 9),
)
add(
    "egnn-pytorch",
    "EGNN_Network, nearest",
    lambda: _module("egnn_pytorch").EGNN_Network(
        num_tokens=9, dim=8, depth=2, num_nearest_neighbors=3, norm_coors=True
    ),
    lambda n, t=6: (torch.randint(0, 9, (n, t)), torch.randn(n, t, 3)),
    NT,
    NT,
    t=(6, 5, 9),
)
add("e3nn", "linear and gate", lambda: _e3nn(), features(17), NT, t=T12)
add("byol-pytorch", "MLP", lambda: _module("byol_pytorch.byol_pytorch").MLP(16, 8, 32), lambda n: torch.randn(n, 16))
add(
    "tft-torch",
    "GatedResidualNetwork",
    lambda: _module("tft_torch.tft").GatedResidualNetwork(8, 16, 4, context_dim=3),
    lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, t, 3)),
    NT,
    NT,
    t=T12,
)
add(
    "rotary-embedding-torch",
    "rotate queries, axial",
    lambda: Part(
        _module("rotary_embedding_torch").RotaryEmbedding(dim=8, use_xpos=True),
        lambda m, q, k: m.rotate_queries_and_keys(q, k),
    ),
    lambda n, t=12: (torch.randn(n, 2, t, 16), torch.randn(n, 2, t, 16)),
    {0: "n", 2: "t"},
    {0: "n", 2: "t"},
    t=T12,
)


def _e3nn() -> nn.Module:
    o3, layers = _module("e3nn.o3"), _module("e3nn.nn")
    gate = layers.Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    return nn.Sequential(o3.Linear("8x0e + 3x1o", gate.irreps_in), gate)


# Architectures of transformers


def _transformer(
    kind: str,
    model: str,
    config: dict[str, Any],
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    call: Callable[..., Any] | None = None,
    **sizes: Sequence[int],
) -> None:
    """Adds an architecture of transformers, made from its configuration."""

    def make() -> nn.Module:
        package = _module("transformers")
        made = getattr(package, model)(getattr(package, f"{kind}Config")(**config))
        return Part(made, call or (lambda m, *args: m(*args, return_dict=False)))

    add("transformers", model, make, inputs, *axes, **sizes)


_SMALL = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "pad_token_id": 0,
}
_IDS = lambda n, t=12: (torch.randint(1, 50, (n, t)), torch.ones(n, t, dtype=torch.long))  # noqa: E731
_GQA = _SMALL | {"num_key_value_heads": 2}
_CACHELESS = lambda m, ids, mask: m(input_ids=ids, attention_mask=mask, use_cache=False, return_dict=False)  # noqa: E731
_transformer("Xmod", "XmodModel", _SMALL | {"languages": ["en"], "default_language": "en"}, _IDS, NT, NT, t=T12)
_transformer("Luke", "LukeModel", _SMALL | {"entity_vocab_size": 20, "entity_emb_size": 16}, _IDS, NT, NT, t=T12)
_transformer(
    "Funnel",
    "FunnelModel",
    {
        "vocab_size": 50,
        "block_sizes": [1, 1],
        "num_decoder_layers": 1,
        "d_model": 32,
        "n_head": 4,
        "d_head": 8,
        "d_inner": 37,
    },
    _IDS,
    NT,
    NT,
    t=T12,
)
_transformer(
    "Olmoe",
    "OlmoeForCausalLM",
    _GQA | {"intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2},
    _IDS,
    NT,
    NT,
    call=_CACHELESS,
    t=T12,
)
_transformer("Nemotron", "NemotronForCausalLM", _GQA, _IDS, NT, NT, call=_CACHELESS, t=T12)
_transformer("Persimmon", "PersimmonForCausalLM", _SMALL, _IDS, NT, NT, call=_CACHELESS, t=T12)
_transformer(
    "RecurrentGemma",
    "RecurrentGemmaForCausalLM",
    _SMALL | {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8, "num_key_value_heads": 1},
    _IDS,
    NT,
    NT,
    call=_CACHELESS,
    t=T12,
)
_transformer(
    "DeepseekV3",
    "DeepseekV3ForCausalLM",
    _SMALL
    | {
        "num_key_value_heads": 4,
        "moe_intermediate_size": 16,
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "kv_lora_rank": 8,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 8,
        "qk_nope_head_dim": 8,
        "first_k_dense_replace": 1,
    },
    _IDS,
    NT,
    NT,
    call=_CACHELESS,
    t=T12,
)
_transformer(
    "Rwkv",
    "RwkvModel",
    {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32, "intermediate_size": 37},
    tokens(50),
    NT,
    call=lambda m, ids: m(ids, use_cache=False, return_dict=False)[0],
    t=T12,
)
_transformer(
    "PatchTSMixer",
    "PatchTSMixerModel",
    {
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "num_input_channels": 2,
        "d_model": 16,
        "num_layers": 2,
    },
    features(2, 32),
)
_transformer(
    "PatchTST",
    "PatchTSTForPrediction",
    {
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 4,
        "num_input_channels": 2,
        "d_model": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "ffn_dim": 32,
        "prediction_length": 8,
    },
    features(2, 32),
    call=lambda m, x: m(past_values=x, return_dict=False)[0],
)
_transformer(
    "Cvt",
    "CvtModel",
    {"embed_dim": [8, 16, 24], "num_heads": [1, 2, 3], "depth": [1, 1, 1]},
    image(64),
    NHW,
    call=lambda m, x: m(x, return_dict=False),
    h=(64, 96, 80),
    w=(64, 72, 95),
)
_transformer(
    "VitDet",
    "VitDetModel",
    {
        "image_size": 64,
        "patch_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "window_block_indices": [0],
        "window_size": 4,
        "use_relative_position_embeddings": True,
    },
    image(64),
)
_transformer(
    "SuperPoint",
    "SuperPointForKeypointDetection",
    {
        "encoder_hidden_sizes": [8, 8, 16, 16],
        "decoder_hidden_size": 16,
        "keypoint_decoder_dim": 65,
        "descriptor_decoder_dim": 16,
    },
    image(64),
    call=lambda m, x: m.encoder(m.extract_one_channel_pixel_values(x))[0],
)
_transformer(
    "UperNet",
    "UperNetForSemanticSegmentation",
    {
        "hidden_size": 16,
        "pool_scales": [1, 2],
        "use_auxiliary_head": False,
        "auxiliary_loss_weight": 0.4,
        "num_labels": 5,
    },
    image(64),
    NHW,
    call=lambda m, x: m(x, return_dict=False)[0],
    h=(64, 96, 80),
    w=(64, 72, 95),
)
_transformer(
    "FastSpeech2Conformer",
    "FastSpeech2ConformerModel",
    {
        "vocab_size": 20,
        "hidden_size": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_num_attention_heads": 2,
        "decoder_num_attention_heads": 2,
        "num_mel_bins": 8,
        "encoder_linear_units": 16,
        "decoder_linear_units": 16,
    },
    lambda n: torch.randint(1, 20, (1, 7)),
    {},
    call=lambda m, x: m(x, return_dict=False)[0],
)
_transformer(
    "Mimi",
    "MimiModel",
    {
        "hidden_size": 16,
        "num_filters": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 8,
        "intermediate_size": 16,
        "codebook_size": 16,
        "codebook_dim": 8,
        "vector_quantization_hidden_dimension": 8,
        "num_quantizers": 3,
        "num_semantic_quantizers": 1,
        "upsampling_ratios": [4, 2],
        "upsample_groups": 16,
        "frame_rate": 750,
    },
    lambda n: torch.randn(n, 1, 512),
    call=lambda m, x: m.encode(x, return_dict=False)[0],
)
_transformer(
    "UnivNet",
    "UnivNetModel",
    {
        "model_in_channels": 8,
        "model_hidden_channels": 8,
        "num_mel_bins": 10,
        "resblock_kernel_sizes": [3],
        "resblock_stride_sizes": [4],
        "resblock_dilation_sizes": [[1, 3]],
        "kernel_predictor_hidden_channels": 8,
    },
    lambda n, t=10: (torch.randn(n, t, 10), torch.randn(n, t, 8)),
    NT,
    NT,
    call=lambda m, x, z: m(x, z, return_dict=False)[0],
    t=(10, 14, 7),
)
_transformer(
    "HGNetV2",
    "HGNetV2Backbone",
    {
        "embedding_size": 8,
        "depths": [1, 1],
        "hidden_sizes": [16, 32],
        "stem_channels": [3, 8, 8],
        "stage_in_channels": [8, 16],
        "stage_mid_channels": [8, 8],
        "stage_out_channels": [16, 32],
        "stage_num_blocks": [1, 1],
        "stage_downsample": [False, True],
        "stage_light_block": [False, True],
        "stage_kernel_size": [3, 5],
        "stage_numb_of_layers": [2, 2],
    },
    image(64),
    NHW,
    call=lambda m, x: m(x, return_dict=False)[0],
    h=(64, 96, 80),
    w=(64, 72, 95),
)
