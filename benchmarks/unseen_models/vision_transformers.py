"""Transformers for pictures, videos and signals: vit-pytorch."""

from __future__ import annotations

from typing import Any

import torch

from unseen_models.table import NHW, add, image, load

SMALL: dict[str, Any] = {"dim": 32, "depth": 2, "heads": 2, "mlp_dim": 48, "num_classes": 7}
PATCHES: dict[str, Any] = {"image_size": 32, "patch_size": 8}
STAGES = {
    f"s{stage}_{name}": value
    for stage in (1, 2, 3)
    for name, value in {"emb_dim": 16 * stage, "heads": stage, "depth": 1}.items()
}


def _model(module: str, name: str, options: dict[str, Any], inputs: Any = None, label: str = "") -> None:
    add(
        "vit-pytorch",
        label or name,
        lambda: getattr(load(f"vit_pytorch.{module}"), name)(**options),
        inputs or image(options.get("image_size", 32)),
    )


_model("look_vit", "LookViT", {"dim": 32, "image_size": 48, "num_classes": 7, "depth": 1, "heads": 2, "dim_head": 16})
_model(
    "regionvit",
    "RegionViT",
    {"dim": (16, 32, 48, 64), "depth": (1, 1, 1, 1), "window_size": 2, "num_classes": 7, "use_peg": True},
    image(64),
)
_model(
    "crossformer",
    "CrossFormer",
    {
        "dim": (32, 64, 96, 128),
        "depth": (1, 1, 1, 1),
        "global_window_size": (4, 2, 1, 1),
        "local_window_size": 2,
        "num_classes": 7,
    },
    image(64),
)
_model(
    "scalable_vit",
    "ScalableViT",
    {
        "num_classes": 7,
        "dim": 16,
        "heads": (1, 2, 2, 4),
        "depth": (1, 1, 1, 1),
        "ssa_dim_key": (8, 8, 8, 8),
        "reduction_factor": (4, 2, 1, 1),
        "window_size": (8, 4, None, None),
    },
    image(64),
)
_model("cvt", "CvT", {"num_classes": 7} | STAGES)
_model(
    "nest",
    "NesT",
    {
        "image_size": 32,
        "patch_size": 4,
        "num_classes": 7,
        "dim": 24,
        "heads": 2,
        "num_hierarchies": 3,
        "block_repeats": (1, 1, 2),
    },
)
_model("rvt", "RvT", PATCHES | SMALL)
_model("max_vit", "MaxViT", {"num_classes": 7, "dim": 16, "depth": (1, 1), "dim_head": 8, "window_size": 2}, image(32))
_model(
    "sep_vit", "SepViT", {"num_classes": 7, "dim": 16, "heads": (1, 2), "depth": (1, 1), "window_size": 7}, image(56)
)
_model(
    "twins_svt",
    "TwinsSVT",
    {f"s{n}_{k}": v for n in (1, 2, 3, 4) for k, v in {"emb_dim": 16, "local_patch_size": 1, "global_k": 2}.items()}
    | {"num_classes": 7, "s3_depth": 1, "s4_depth": 1},
    image(64),
)
_model("xcit", "XCiT", PATCHES | SMALL | {"cls_depth": 1})
_model("vit_nd_rotary", "ViTND", {"ndim": 2, "input_shape": 32, "patch_size": 8} | SMALL, image(32))
_model("jumbo_vit", "JumboViT", PATCHES | SMALL)
_model("normalized_vit", "nViT", PATCHES | SMALL)
_model("simple_uvit", "SimpleUViT", PATCHES | SMALL)
_model(
    "simple_vit_with_fft",
    "SimpleViT",
    PATCHES | SMALL | {"freq_patch_size": 8},
    label="SimpleViT with a Fourier transform",
)
_model("simple_vit_with_register_tokens", "SimpleViT", PATCHES | SMALL, label="SimpleViT with registers")
_model("simple_vit_with_qk_norm", "SimpleViT", PATCHES | SMALL, label="SimpleViT, normalised queries")
_model(
    "levit",
    "LeViT",
    {"image_size": 64, "num_classes": 7, "dim": (16, 32), "depth": 1, "heads": 2, "stages": 2, "mlp_mult": 2},
)
_model(
    "cct_3d",
    "CCT",
    {
        "img_size": 16,
        "num_frames": 4,
        "embedding_dim": 24,
        "n_conv_layers": 1,
        "frame_kernel_size": 2,
        "num_layers": 1,
        "num_heads": 2,
        "mlp_ratio": 2,
        "num_classes": 7,
    },
    lambda n: torch.randn(n, 3, 4, 16, 16),
    label="CCT of videos",
)
_model(
    "vivit",
    "ViViT",
    {
        "image_size": 16,
        "image_patch_size": 8,
        "frames": 4,
        "frame_patch_size": 2,
        "num_classes": 7,
        "dim": 32,
        "spatial_depth": 1,
        "temporal_depth": 1,
        "heads": 2,
        "mlp_dim": 48,
    },
    lambda n: torch.randn(n, 3, 4, 16, 16),
)
_model(
    "t2t",
    "T2TViT",
    {
        "dim": 32,
        "image_size": 32,
        "depth": 1,
        "heads": 2,
        "mlp_dim": 48,
        "num_classes": 7,
        "t2t_layers": ((7, 4), (3, 2)),
    },
)
_model("cait", "CaiT", PATCHES | SMALL | {"cls_depth": 1, "layer_dropout": 0.0})
_model("deepvit", "DeepViT", PATCHES | SMALL)
_model(
    "pit",
    "PiT",
    {"image_size": 32, "patch_size": 8, "dim": 32, "num_classes": 7, "depth": (1, 1), "heads": 2, "mlp_dim": 48},
)
_model(
    "cross_vit",
    "CrossViT",
    {
        "image_size": 48,
        "num_classes": 7,
        "sm_dim": 16,
        "lg_dim": 24,
        "sm_patch_size": 12,
        "sm_enc_depth": 1,
        "sm_enc_heads": 2,
        "sm_enc_mlp_dim": 32,
        "sm_enc_dim_head": 8,
        "lg_patch_size": 24,
        "lg_enc_depth": 1,
        "lg_enc_heads": 2,
        "lg_enc_mlp_dim": 32,
        "lg_enc_dim_head": 8,
        "cross_attn_depth": 1,
        "cross_attn_heads": 2,
        "cross_attn_dim_head": 8,
        "depth": 1,
    },
)
_model(
    "mobile_vit",
    "MobileViT",
    {
        "image_size": (64, 64),
        "dims": [24, 32, 40],
        "channels": [8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 48],
        "num_classes": 7,
    },
    image(64),
)
_model(
    "vit_with_patch_merger",
    "ViT",
    PATCHES | SMALL | {"patch_merge_layer": 1, "patch_merge_num_tokens": 4},
    label="ViT that merges patches",
)
_model("vit_for_small_dataset", "ViT", PATCHES | SMALL, label="ViT with shifted patches")
_model(
    "vit_1d", "ViT", {"seq_len": 64, "patch_size": 8} | SMALL, lambda n: torch.randn(n, 3, 64), label="ViT of signals"
)
_model("na_vit", "NaViT", PATCHES | SMALL | {"token_dropout_prob": None}, label="NaViT of equal pictures")

add(
    "vit-pytorch",
    "MaxViT's first stage, any size",
    lambda: load("vit_pytorch.max_vit").MBConv(8, 8, downsample=True),
    image(32, 8),
    NHW,
    h=(32, 48, 20),
    w=(32, 16, 44),
)
