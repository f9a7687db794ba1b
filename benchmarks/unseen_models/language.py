"""Language models of packages other than transformers, and fine-tuned ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, Part, add, add_class, features, load, tokens

LLAMA: dict[str, Any] = {
    "n_query_groups": 2,
    "norm_class_name": "RMSNorm",
    "parallel_residual": False,
    "bias": False,
    "rotary_percentage": 1.0,
    "intermediate_size": 32,
}


def _gpt(name: str, **options: Any) -> None:
    def make() -> nn.Module:
        sizes = {"block_size": 32, "n_layer": 2, "n_embd": 16, "vocab_size": 40, "padded_vocab_size": 40, "n_head": 4}
        model: nn.Module = load("litgpt.model").GPT(load("litgpt.config").Config(**sizes, **options))
        return model

    add("litgpt", name, make, tokens(40), NT, t=T12)


_gpt("GPT-NeoX style")
_gpt("Llama style, grouped", mlp_class_name="LLaMAMLP", **LLAMA)
_gpt("Mixtral style", mlp_class_name="LLaMAMoE", n_expert=4, n_expert_per_token=2, **LLAMA)
_gpt(
    "sliding window, softcap",
    mlp_class_name="GemmaMLP",
    sliding_window_size=4,
    sliding_window_indices=[1, 0],
    attention_logit_softcapping=30.0,
    final_logit_softcapping=20.0,
    **LLAMA,
)
SMALL = {"dim": 16, "depth": 2, "heads": 2, "dim_head": 8}
add_class("PaLM-rlhf-pytorch", "PaLM", {**SMALL, "num_tokens": 40}, tokens(40), NT, module="palm_rlhf_pytorch", t=T12)
add_class(
    "performer-pytorch",
    "PerformerLM",
    {**SMALL, "num_tokens": 40, "max_seq_len": 32, "nb_features": 12},
    tokens(40),
    NT,
    t=T12,
)
add_class("performer-pytorch", "Performer", {**SMALL, "depth": 1, "nb_features": 12}, features(16), NT, t=T12)


def _torchscale(kind: str) -> nn.Module:
    architecture, embed = load(f"torchscale.architecture.{kind}"), nn.Embedding(40, 16)
    configs = load("torchscale.architecture.config")
    side = "encoder" if kind == "encoder" else "decoder"
    options: dict[str, Any] = {"vocab_size": 40, f"{side}_embed_dim": 16, f"{side}_ffn_embed_dim": 32}
    options[f"{side}_layers"] = 2
    if kind == "retnet":
        config = configs.RetNetConfig(decoder_value_embed_dim=16, decoder_retention_heads=2, **options)
        return Part(architecture.RetNetDecoder(config, embed_tokens=embed), lambda m, x: m(x)[0])
    options[f"{side}_attention_heads"] = 2
    if kind == "decoder":
        config = configs.DecoderConfig(xpos_rel_pos=True, xpos_scale_base=32, **options)
        return Part(architecture.Decoder(config, embed_tokens=embed), lambda m, x: m(x)[0])
    config = configs.EncoderConfig(rel_pos_buckets=8, max_rel_pos=16, no_output_layer=True, **options)
    return Part(architecture.Encoder(config, embed_tokens=embed), lambda m, x: m(x)["encoder_out"])


for each in ("encoder", "decoder", "retnet"):
    add("torchscale", each, lambda kind=each: _torchscale(kind), tokens(40), NT, t=T12)  # type: ignore[misc]


def _tuned(name: str, config: str, **options: Any) -> None:
    def make() -> nn.Module:
        t, p = load("transformers"), load("peft")
        base = t.GPT2LMHeadModel(t.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=48))
        return Part(p.get_peft_model(base, getattr(p, config)(**options)), _logits)

    add("peft", name, make, tokens(40), NT, t=T12)


def _logits(model: nn.Module, ids: Tensor) -> Any:
    return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


VIRTUAL: dict[str, Any] = {"num_virtual_tokens": 4, "task_type": "CAUSAL_LM"}
_tuned("GPT2 with prefix", "PrefixTuningConfig", **VIRTUAL)
_tuned("GPT2 with prompt", "PromptTuningConfig", **VIRTUAL)
INSIDE: dict[str, Any] = {"target_modules": ["c_attn"], "fan_in_fan_out": True}
_tuned("GPT2 with DoRA", "LoraConfig", r=2, use_dora=True, init_lora_weights=False, **INSIDE)
_tuned("GPT2 with IA3", "IA3Config", feedforward_modules=[], init_ia3_weights=False, **INSIDE)


def _bert_with_lora() -> nn.Module:
    t, p = load("transformers"), load("peft")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    base = t.BertModel(t.BertConfig(vocab_size=40, max_position_embeddings=32, **sizes))
    tuned = p.get_peft_model(base, p.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False))
    return Part(tuned, lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state)


add("peft", "BERT with LoRA", _bert_with_lora, tokens(40), NT, t=T12)
