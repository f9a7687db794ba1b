"""Separation of sounds, language models with many options, and pictures beside texts."""

from __future__ import annotations

from typing import Any

import torch

from unseen_models.table import NT, T12, Part, add, load, tokens

SAMPLES = (1600, 2003, 1217)
SOUND = {0: "n", 2: "s"}

SEPARATORS: dict[str, dict[str, Any]] = {
    "ConvTasNet": {"n_src": 2, "n_filters": 16, "n_blocks": 2, "n_repeats": 1, "bn_chan": 8, "hid_chan": 16},
    "DPRNNTasNet": {
        "n_src": 2,
        "n_filters": 16,
        "chunk_size": 20,
        "hop_size": 10,
        "n_repeats": 1,
        "bn_chan": 8,
        "hid_size": 8,
    },
    "SuDORMRFNet": {
        "n_src": 2,
        "n_filters": 16,
        "bn_chan": 8,
        "num_blocks": 1,
        "upsampling_depth": 2,
        "out_chan": 16,
        "skip_chan": 8,
    },
    "DeMask": {"hidden_dims": (16,), "n_filters": 32, "kernel_size": 32, "stride": 16},
    "LSTMTasNet": {"n_src": 2, "n_filters": 16, "hid_size": 8, "n_layers": 1},
}
for _name, _options in SEPARATORS.items():
    add(
        "asteroid",
        _name,
        lambda name=_name, options=_options: getattr(load("asteroid.models"), name)(**options),
        lambda n, s=SAMPLES[0]: torch.randn(n, 1, s),
        SOUND,
        s=SAMPLES,
    )

SMALL: dict[str, Any] = {"dim": 32, "depth": 2, "heads": 2, "attn_dim_head": 16}
OPTIONS: dict[str, dict[str, Any]] = {
    "rotary positions": {"rotary_pos_emb": True},
    "dynamic positions": {"dynamic_pos_bias": True},
    "sandwich norm, gated": {"sandwich_norm": True, "attn_gate_values": True, "ff_glu": True},
    "memory of keys": {"attn_num_mem_kv": 4, "use_rmsnorm": True},
    "one head of keys": {"attn_one_kv_head": True, "ff_swish": True},
    "sparse keys": {"attn_sparse_topk": 4},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "shifted tokens": {"shift_tokens": 1},
    "cosine attention": {"attn_qk_norm": True, "attn_qk_norm_groups": 4},
    "hybrid positions": {"alibi_pos_bias": True, "alibi_num_heads": 1},
}
for _name, _options in OPTIONS.items():
    add(
        "x-transformers",
        f"Decoder, {_name}",
        lambda options=_options: load("x_transformers").TransformerWrapper(
            num_tokens=40, max_seq_len=32, attn_layers=load("x_transformers").Decoder(**SMALL, **options)
        ),
        tokens(40),
        NT,
        t=T12,
    )
add(
    "open_clip_torch",
    "CLIP of open_clip",
    lambda: Part(
        load("open_clip.model").CLIP(
            16,
            {"image_size": 32, "layers": 1, "width": 64, "patch_size": 8, "head_width": 32},
            {"context_length": 12, "vocab_size": 40, "width": 32, "heads": 2, "layers": 1},
        ),
        lambda m, pictures, texts: m(pictures, texts),
    ),
    lambda n: (torch.randn(n, 3, 32, 32), torch.randint(1, 40, (n, 12))),
    {0: "n"},
    {0: "n"},
)
add(
    "open_clip_torch",
    "CoCa of open_clip",
    lambda: Part(
        load("open_clip.coca_model").CoCa(
            16,
            {"context_length": 12, "vocab_size": 40, "width": 32, "heads": 2, "layers": 1, "mlp_ratio": 2},
            {
                "context_length": 12,
                "vocab_size": 40,
                "width": 32,
                "heads": 2,
                "layers": 1,
                "embed_cls": True,
                "output_tokens": True,
            },
            {
                "image_size": 32,
                "layers": 1,
                "width": 64,
                "patch_size": 8,
                "head_width": 32,
                "attentional_pool": True,
                "attn_pooler_queries": 8,
                "attn_pooler_heads": 2,
                "output_tokens": True,
            },
        ),
        lambda m, pictures, texts: (m.encode_image(pictures), m.encode_text(texts)),
    ),
    lambda n: (torch.randn(n, 3, 32, 32), torch.randint(1, 40, (n, 12))),
    {0: "n"},
    {0: "n"},
)
