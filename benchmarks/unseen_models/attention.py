"""Attention over pictures and sets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, NT, T12, N, Part, add, add_class, image, load

SIZES = {"h": (16, 20, 9), "w": (16, 12, 24)}
LATENTS: dict[str, Any] = {"depth": 2, "latent_dim": 16, "latent_heads": 2, "cross_dim_head": 8, "latent_dim_head": 8}

add_class(
    "perceiver-pytorch",
    "Perceiver",
    {**LATENTS, "num_freq_bands": 4, "max_freq": 10.0, "num_latents": 8, "num_classes": 5},
    lambda n, h=16, w=16: torch.randn(n, h, w, 3),
    {0: "n", 1: "h", 2: "w"},
    **SIZES,
)
add(
    "perceiver-pytorch",
    "PerceiverIO",
    lambda: Part(
        load("perceiver_pytorch").PerceiverIO(dim=8, queries_dim=8, logits_dim=5, num_latents=6, **LATENTS),
        lambda m, x, queries: m(x, queries=queries),
    ),
    lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, 7, 8)),
    NT,
    N,
    t=T12,
)
add_class("axial-attention", "AxialAttention", {"dim": 8, "heads": 2, "dim_index": 1}, image(16, 8), NHW, **SIZES)
add_class(
    "axial-attention",
    "AxialImageTransformer",
    {"dim": 8, "depth": 2, "heads": 2, "axial_pos_emb_shape": (16, 16)},
    image(16, 8),
)
add_class(
    "lambda-networks",
    "LambdaLayer",
    {"dim": 8, "dim_out": 8, "r": 5, "dim_k": 4, "heads": 2, "dim_u": 2},
    image(16, 8),
    NHW,
    **SIZES,
)


def _sam_encoder() -> nn.Module:
    made: nn.Module = load("segment_anything.modeling").ImageEncoderViT(
        img_size=64,
        patch_size=8,
        embed_dim=16,
        depth=2,
        num_heads=2,
        out_chans=8,
        use_rel_pos=True,
        window_size=3,
        global_attn_indexes=(1,),
    )
    return made


class _Sam(nn.Module):
    """From points and boxes to masks, on features of the encoder."""

    def __init__(self) -> None:
        super().__init__()
        parts = load("segment_anything.modeling")
        self.prompts = parts.PromptEncoder(16, (8, 8), (64, 64), 4)
        transformer = parts.TwoWayTransformer(depth=2, embedding_dim=16, mlp_dim=32, num_heads=2)
        self.masks = parts.MaskDecoder(transformer_dim=16, transformer=transformer)

    def forward(self, features: Tensor, points: Tensor, labels: Tensor, boxes: Tensor) -> Any:
        sparse, dense = self.prompts((points, labels), boxes, None)
        return self.masks(features, self.prompts.get_dense_pe(), sparse, dense, True)


def _prompts(n: int, p: int = 3) -> tuple[Tensor, ...]:
    return torch.randn(1, 16, 8, 8), torch.rand(n, p, 2) * 64, torch.randint(0, 2, (n, p)), torch.rand(n, 4) * 64


POINTS = {0: "n", 1: "p"}
add("segment-anything", "SAM encoder", _sam_encoder, image(64))
add("segment-anything", "SAM prompts and masks", _Sam, _prompts, {}, POINTS, POINTS, N, p=(3, 1, 6))
