"""Pictures: attention, mixing and diffusion."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, NT, T12, N, Part, add, add_class, image, load, tokens


def _coca() -> nn.Module:
    return load("coca_pytorch").CoCa(
        dim=32, num_tokens=50, unimodal_depth=1, multimodal_depth=1, image_dim=24, num_img_queries=8, heads=2
    )


add(
    "swin-transformer-pytorch",
    "SwinTransformer",
    lambda: load("swin_transformer_pytorch").SwinTransformer(
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
    lambda: load("mlp_mixer_pytorch").MLPMixer(
        image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=10
    ),
    image(),
)
add(
    "g-mlp-pytorch",
    "gMLPVision",
    lambda: load("g_mlp_pytorch").gMLPVision(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2),
    image(),
)
add(
    "halonet-pytorch",
    "HaloAttention",
    lambda: load("halonet_pytorch").HaloAttention(dim=16, block_size=4, halo_size=2, dim_head=8, heads=2),
    image(16, 16),
    NHW,
    h=(16, 24, 8),
    w=(16, 8, 20),
)
add(
    "bottleneck-transformer-pytorch",
    "BottleStack",
    lambda: load("bottleneck_transformer_pytorch").BottleStack(
        dim=16, fmap_size=16, dim_out=32, heads=2, dim_head=8, rel_pos_emb=True
    ),
    image(16, 16),
)
add(
    "timesformer-pytorch",
    "TimeSformer",
    lambda: load("timesformer_pytorch").TimeSformer(
        dim=32, image_size=32, patch_size=8, num_frames=4, num_classes=10, depth=2, heads=2, dim_head=16
    ),
    lambda n: torch.randn(n, 4, 3, 32, 32),
)
add(
    "stam-pytorch",
    "STAM",
    lambda: load("stam_pytorch").STAM(
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
    lambda: load("glom_pytorch").Glom(dim=16, levels=3, image_size=32, patch_size=8),
    image(),
)
add(
    "x-clip",
    "CLIP",
    lambda: load("x_clip").CLIP(
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
    lambda: load("denoising_diffusion_pytorch").Unet(dim=16, dim_mults=(1, 2), attn_heads=2),
    lambda n, h=32, w=32: (torch.randn(n, 3, h, w), torch.rand(n) * 100),
    NHW,
    N,
    h=(32, 48, 30),
    w=(32, 30, 40),
)
add(
    "denoising-diffusion-pytorch",
    "Unet1D",
    lambda: load("denoising_diffusion_pytorch").Unet1D(
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
    lambda: load("denoising_diffusion_pytorch").KarrasUnet(
        image_size=32, dim=16, dim_max=32, num_downsamples=2, num_blocks_per_stage=1, attn_dim_head=8
    ),
    lambda n: (torch.randn(n, 4, 32, 32), torch.rand(n)),
    N,
    N,
)
add_class(
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
add_class(
    "uformer-pytorch",
    "Uformer",
    {"dim": 8, "stages": 2, "num_blocks": 1, "window_size": 4, "dim_head": 8, "heads": 2},
    image(32),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
add_class(
    "deformable-attention",
    "DeformableAttention",
    {"dim": 16, "dim_head": 8, "heads": 2},
    image(16, 16),
    NHW,
    h=(16, 24, 20),
    w=(16, 32, 12),
)
add_class(
    "res-mlp-pytorch", "ResMLP", {"image_size": 32, "patch_size": 8, "dim": 16, "depth": 2, "num_classes": 10}, image()
)


def _diffusion() -> nn.Module:
    unet = load("dalle2_pytorch").Unet
    options: dict[str, Any] = {"attn_heads": 2, "attn_dim_head": 8, "resnet_groups": 4, "dim_mults": (1, 2)}
    model = unet(dim=8, image_embed_dim=16, cond_dim=8, channels=3, **options)
    return Part(model, lambda m, x, t, e: m(x, t, image_embed=e))


def _prior() -> nn.Module:
    network = load("dalle2_pytorch").DiffusionPriorNetwork
    model = network(dim=16, num_timesteps=100, depth=1, dim_head=8, heads=2)
    return Part(model, lambda m, x, t, e: m(x, t, text_embed=e))


def _noisy(n: int, h: int = 16, w: int = 16) -> tuple[Tensor, ...]:
    return image(16)(n, h, w), torch.randint(0, 100, (n,)), torch.randn(n, 16)


add("dalle2-pytorch", "dalle2 Unet", _diffusion, _noisy, NHW, N, N, h=(16, 32), w=(16, 24))
add(
    "dalle2-pytorch",
    "DiffusionPriorNetwork",
    _prior,
    lambda n: (torch.randn(n, 16), torch.randint(0, 100, (n,)), torch.randn(n, 16)),
    N,
    N,
    N,
)
