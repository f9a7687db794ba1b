"""The tiny configurations of transformers' architectures: two layers, 32 channels, a hundred tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tiny:
    """How one architecture is made small, and what it takes."""

    kind: str
    """What it takes: text, text to text, vision, audio or several."""
    inputs: tuple[str, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    side: int = 32
    """Height and width of its pictures, in pixels."""
    tokens: int = 7
    frames: tuple[int, ...] = ()
    """Frames of a clip, for a model of videos."""
    sound: tuple[int, ...] = ()
    """Shape of its sound without the batch, where it is not the usual one."""
    mask: tuple[int, ...] = ()
    """Shape without the batch of the numbers that it adds to its scores, where it takes no mask of tokens."""


_TEXT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
_GROUPED: dict[str, Any] = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8}
_GPT: dict[str, Any] = {
    "vocab_size": 99,
    "n_positions": 64,
    "n_ctx": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
_SEQ: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_T5: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_VIT: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
_STAGES: dict[str, Any] = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
_SWIN: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [1, 2, 1],
    "num_heads": [2, 2, 4],
    "window_size": 4,
}
_WAVE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 2, 2],
    "conv_kernel": [10, 3, 3],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 3,
}
_CLIP: dict[str, Any] = {
    "text_config": {**_TEXT, "projection_dim": 16},
    "vision_config": {**_VIT, "projection_dim": 16},
    "projection_dim": 16,
}

_IDS = ("input_ids", "attention_mask")
_PAIRS = ("input_ids", "attention_mask", "decoder_input_ids")
_PICTURE = ("pixel_values",)


def _text(**config: Any) -> Tiny:
    return Tiny("text", _IDS, {**_TEXT, **config})


def _decoder(**config: Any) -> Tiny:
    return Tiny("text decoder", _IDS, {**_GROUPED, **config})


def _gpt(**config: Any) -> Tiny:
    return Tiny("text decoder", _IDS, {**_GPT, **config})


def _pair(base: Mapping[str, Any] = _SEQ, **config: Any) -> Tiny:
    return Tiny("text to text", _PAIRS, {**base, **config})


def _picture(base: Mapping[str, Any] = _VIT, side: int = 32, **config: Any) -> Tiny:
    return Tiny("vision", _PICTURE, {**base, **config}, side)


def _wave(**config: Any) -> Tiny:
    return Tiny("audio", ("input_values",), {**_WAVE, **config})


_EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}

ARCHITECTURES: dict[str, Tiny] = {
    # encoders of text
    "albert": _text(embedding_size=16),
    "bert": _text(),
    "big_bird": _text(attention_type="original_full"),
    "camembert": _text(),
    "canine": _text(num_hash_buckets=97, downsampling_rate=4, local_transformer_stride=8),
    "convbert": _text(embedding_size=32, conv_kernel_size=3),
    "data2vec-text": _text(),
    "deberta": _text(relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "deberta-v2": _text(relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8),
    "distilbert": Tiny("text", _IDS, {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "electra": _text(embedding_size=16),
    "ernie": _text(),
    "esm": _text(mask_token_id=3, position_embedding_type="rotary"),
    "flaubert": Tiny("text", _IDS, {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    "fnet": Tiny("text", ("input_ids",), _TEXT),
    "ibert": _text(),
    "layoutlm": _text(),
    "longformer": _text(attention_window=[4, 4]),
    "megatron-bert": _text(),
    "mobilebert": _text(embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32),
    "modernbert": _text(local_attention=4, global_attn_every_n_layers=2, cls_token_id=0, sep_token_id=2),
    "mpnet": _text(),
    # The mask that it makes of one of tokens has a row for each token, and its scores one for each landmark.
    "nystromformer": Tiny(
        "text", _IDS, {**_TEXT, "num_landmarks": 4, "segment_means_seq_len": 8}, tokens=8, mask=(1, 1, 8)
    ),
    "rembert": _text(input_embedding_size=16, output_embedding_size=16),
    "roberta": _text(),
    "roberta-prelayernorm": _text(),
    "roformer": _text(embedding_size=32),
    "splinter": _text(),
    "squeezebert": _text(embedding_size=32, q_groups=2, k_groups=2, v_groups=2),
    "xlm": Tiny("text", _IDS, {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4}),
    "xlm-roberta": _text(),
    "xlnet": Tiny("text", _IDS, {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    # decoders, one step
    "biogpt": _text(),
    "bloom": Tiny("text decoder", _IDS, {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "codegen": _gpt(rotary_dim=4),
    "cohere": _decoder(),
    "falcon": Tiny("text decoder", _IDS, _TEXT),
    "gemma": _decoder(),
    "gemma2": _decoder(sliding_window=8),
    "gemma3_text": _decoder(sliding_window=8),
    "gpt2": _gpt(),
    "gpt_bigcode": _gpt(),
    "gpt_neo": Tiny(
        "text decoder",
        _IDS,
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "max_position_embeddings": 64,
        },
    ),
    "gpt_neox": _text(),
    "gptj": _gpt(rotary_dim=4),
    "granite": _decoder(),
    "llama": _decoder(),
    "mamba": Tiny("text decoder", ("input_ids",), {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2}),
    "mistral": _decoder(sliding_window=8),
    "mixtral": _decoder(num_local_experts=4),
    "mpt": Tiny("text decoder", _IDS, {"vocab_size": 99, "d_model": 32, "n_layers": 2, "n_heads": 4}),
    "olmo": _decoder(),
    "olmo2": _decoder(),
    "openai-gpt": _gpt(),
    "opt": _text(ffn_dim=64, word_embed_proj_dim=32),
    "phi": _decoder(partial_rotary_factor=0.5),
    "phi3": _decoder(),
    "qwen2": _decoder(),
    "qwen2_moe": _decoder(**_EXPERTS, shared_expert_intermediate_size=32),
    "qwen3": _decoder(),
    "qwen3_moe": _decoder(**_EXPERTS),
    "smollm3": _decoder(),
    "stablelm": _decoder(),
    "starcoder2": _decoder(),
    # text to text
    "bart": _pair(),
    "blenderbot-small": _pair(),
    "longt5": _pair(_T5),
    "m2m_100": _pair(),
    "marian": _pair(),
    "mbart": _pair(),
    "mt5": _pair(_T5),
    "pegasus": _pair(),
    "switch_transformers": _pair(_T5, num_experts=2),
    "t5": _pair(_T5),
    "umt5": _pair(_T5),
    # vision
    "beit": _picture(use_relative_position_bias=True),
    "bit": _picture({}, 64, num_groups=4, embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1]),
    "convnext": _picture(_STAGES, 64),
    "convnextv2": _picture(_STAGES, 64),
    "data2vec-vision": _picture(use_relative_position_bias=True),
    "deit": _picture(),
    "dinov2": _picture(),
    "dinov2_with_registers": _picture(),
    "dinov3_vit": _picture(),
    "dpt": _picture(backbone_out_indices=[0, 1, 2, 3], num_hidden_layers=4, fusion_hidden_size=16),
    "focalnet": _picture({}, 32, image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], hidden_sizes=[16, 32]),
    "glpn": _picture(
        {},
        64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
    ),
    "hiera": _picture({}, 32, image_size=[32, 32], embed_dim=16, depths=[1, 1], num_heads=[1, 2], num_query_pool=1),
    "ijepa": _picture(),
    "levit": _picture(
        {},
        64,
        image_size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "mobilenet_v1": _picture({}, 64, image_size=64, depth_multiplier=0.25, min_depth=8),
    "mobilenet_v2": _picture({}, 64, image_size=64, depth_multiplier=0.25, min_depth=8),
    "mobilevit": _picture(
        {}, 64, image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32]
    ),
    "mobilevitv2": _picture({}, 64, image_size=64, width_multiplier=0.25),
    "poolformer": _picture({}, 64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    "pvt": _picture(
        {}, 64, image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2]
    ),
    "pvt_v2": _picture(
        {}, 64, image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2]
    ),
    "regnet": _picture({}, 64, embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], groups_width=8),
    "resnet": _picture({}, 64, embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1]),
    "segformer": _picture({}, 64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2]),
    "siglip_vision_model": _picture(),
    "swiftformer": _picture({}, 64, image_size=64, depths=[1, 1, 1, 1], embed_dims=[8, 16, 24, 32]),
    "swin": _picture(_SWIN),
    "swin2sr": _picture({}, 32, image_size=32, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    "swinv2": _picture(_SWIN),
    "timesformer": Tiny("vision", _PICTURE, {**_VIT, "num_frames": 4}, frames=(4,)),
    "videomae": Tiny("vision", _PICTURE, {**_VIT, "num_frames": 4, "tubelet_size": 2}, frames=(4,)),
    "vit": _picture(),
    "vit_msn": _picture(),
    "vitdet": _picture(),
    "vivit": Tiny("vision", _PICTURE, {**_VIT, "num_frames": 4, "tubelet_size": [2, 8, 8]}, frames=(4,)),
    "yolos": _picture(image_size=[32, 32], num_detection_tokens=5),
    # audio
    "audio-spectrogram-transformer": Tiny(
        "audio", ("input_values",), {**_VIT, "max_length": 32, "num_mel_bins": 16}, sound=(32, 16)
    ),
    "data2vec-audio": _wave(),
    "hubert": _wave(),
    "sew": _wave(squeeze_factor=2),
    "unispeech": _wave(),
    "unispeech-sat": _wave(),
    "wav2vec2": _wave(),
    "wav2vec2-bert": Tiny(
        "audio",
        ("input_features",),
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "feature_projection_input_dim": 16,
        },
        sound=(24, 16),
    ),
    "wav2vec2-conformer": _wave(),
    "wavlm": _wave(),
    "whisper": Tiny(
        "audio",
        ("input_features", "decoder_input_ids"),
        {**_SEQ, "num_mel_bins": 16, "max_source_positions": 16, "max_target_positions": 32},
        sound=(16, 32),
    ),
    # several
    "altclip": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "blip": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "chinese_clip": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "clip": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "clipseg": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "siglip": Tiny("several", (*_IDS, "pixel_values"), _CLIP),
    "vilt": Tiny("several", (*_IDS, "pixel_values"), {**_TEXT, **_VIT}),
}
