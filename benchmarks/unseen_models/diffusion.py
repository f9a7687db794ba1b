"""Networks of diffusion, with pictures and prompts of any size: diffusers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from unseen_models.table import NHW, N, Part, add, image, load

SIZES = {"h": (16, 24, 20), "w": (24, 16, 32)}
BLOCKS: dict[str, Any] = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}


def _network(kind: str, call: Callable[..., Any], **options: Any) -> nn.Module:
    return Part(getattr(load("diffusers"), kind)(**options), call)


def _prompted(n: int, h: int = 16, w: int = 24, t: int = 7) -> tuple[Any, ...]:
    return torch.randn(n, 4, h, w), torch.randint(0, 1000, (n,)), torch.randn(n, t, 16)


add(
    "diffusers",
    "UNet2DConditionModel",
    lambda: _network(
        "UNet2DConditionModel",
        lambda m, x, step, prompt: m(x, step, prompt, return_dict=False)[0],
        sample_size=16,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
        **BLOCKS,
    ),
    _prompted,
    NHW,
    N,
    {0: "n", 1: "t"},
    **SIZES,
    t=(7, 5, 12),
)
add(
    "diffusers",
    "UNet2DModel",
    lambda: _network(
        "UNet2DModel",
        lambda m, x, step: m(x, step, return_dict=False)[0],
        sample_size=16,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        **BLOCKS,
    ),
    lambda n, h=16, w=24: (torch.randn(n, 3, h, w), torch.randint(0, 1000, (n,))),
    NHW,
    N,
    **SIZES,
)
for part, channels in (("encode", 3), ("decode", 4)):
    add(
        "diffusers",
        f"AutoencoderKL.{part}",
        lambda part=part: _network(
            "AutoencoderKL",
            (lambda m, x: m.encode(x).latent_dist.mean) if part == "encode" else lambda m, x: m.decode(x).sample,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            **BLOCKS,
        ),
        image(16, channels),
        NHW,
        **SIZES,
    )
