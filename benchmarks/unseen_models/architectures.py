"""Architectures of transformers, from their configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from unseen_models.table import NHW, NT, T12, Part, add, features, image, load, tokens


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
        package = load("transformers")
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
