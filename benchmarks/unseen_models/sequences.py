"""Sequences: attention and its many substitutes, of tokens and of features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, Part, add, add_class, features, load, tokens


def _after_a_call(model: nn.Module, *args: Tensor) -> nn.Module:
    """A model that draws random numbers for its tables when it is called first, as it is from then on."""
    with torch.no_grad():
        model.eval()(*args)
    return model


add(
    "local-attention",
    "LocalTransformer",
    lambda: load("local_attention").LocalTransformer(
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
            load("routing_transformer").RoutingTransformerLM(
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
    lambda: load("reformer_pytorch").ReformerLM(
        50, 32, 2, 64, heads=2, dim_head=16, bucket_size=4, full_attn_thres=64, ff_chunks=2
    ),
    tokens(50, 16),
)
add(
    "sinkhorn-transformer",
    "SinkhornTransformerLM",
    lambda: load("sinkhorn_transformer").SinkhornTransformerLM(50, 32, 64, 2, heads=2, bucket_size=8),
    tokens(50, 64),
)
add(
    "nystrom-attention",
    "Nystromformer",
    lambda: load("nystrom_attention").Nystromformer(dim=32, depth=2, dim_head=8, heads=2, num_landmarks=4),
    features(32),
    NT,
    t=(16, 32, 13),
)
add(
    "memory-efficient-attention-pytorch",
    "Attention, chunked",
    lambda: load("memory_efficient_attention_pytorch").Attention(
        dim=32, heads=2, dim_head=16, causal=True, memory_efficient=True, q_bucket_size=4, k_bucket_size=8
    ),
    features(32, 16),
)
add("mega-pytorch", "Mega", lambda: load("mega_pytorch").Mega(dim=32, num_tokens=50, depth=2), tokens(50), NT, t=T12)
add(
    "g-mlp-pytorch",
    "gMLP",
    lambda: load("g_mlp_pytorch").gMLP(num_tokens=50, dim=32, depth=2, seq_len=16),
    tokens(50, 16),
)
add(
    "g-mlp-pytorch",
    "gMLP, causal and circulant",
    lambda: load("g_mlp_pytorch").gMLP(
        dim=32, depth=2, seq_len=16, causal=True, circulant_matrix=True, heads=2, attn_dim=8
    ),
    features(32, 16),
)
add_class(
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
add_class(
    "gateloop-transformer",
    "Transformer",
    {"dim": 32, "num_tokens": 50, "depth": 2, "heads": 2, "dim_head": 16, "use_gate_looped_attn": True},
    tokens(50),
    NT,
    t=T12,
)
add_class(
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
add_class("soft-moe-pytorch", "SoftMoE", {"dim": 16, "seq_len": 12, "num_experts": 3}, features(16), NT, t=T12)
add_class("st-moe-pytorch", "MoE", {"dim": 16, "num_experts": 4}, features(16), name="MoE")
add_class(
    "bidirectional-cross-attention",
    "BidirectionalCrossAttention",
    {"dim": 16, "heads": 2, "dim_head": 8, "context_dim": 12},
    lambda n, t=12, s=9: (torch.randn(n, t, 16), torch.randn(n, s, 12)),
    NT,
    {0: "n", 1: "s"},
    t=T12,
    s=(9, 12, 5),
)
add_class(
    "recurrent-memory-transformer-pytorch",
    "RecurrentMemoryTransformer",
    {"dim": 32, "num_tokens": 50, "depth": 2, "num_memory_tokens": 4, "seq_len": 16, "heads": 2, "dim_head": 8},
    tokens(50, 16),
)
add_class(
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
add_class(
    "feedback-transformer-pytorch",
    "FeedbackTransformer",
    {"num_tokens": 50, "dim": 16, "depth": 1, "mem_len": 8, "seq_len": 2, "heads": 2, "dim_head": 8},
    tokens(50, 6),
)
add_class(
    "fast-transformer-pytorch",
    "FastTransformer",
    {"num_tokens": 50, "dim": 16, "depth": 2, "max_seq_len": 32, "absolute_pos_emb": True, "heads": 2},
    lambda n, t=12: (tokens(50)(n, t), torch.rand(n, t) > 0.2),
    NT,
    NT,
    t=T12,
)
add_class(
    "charformer-pytorch",
    "GBST",
    {"num_tokens": 50, "dim": 16, "max_block_size": 4, "downsample_factor": 4},
    tokens(50, 16),
    NT,
    t=(16, 24, 13),
)
add_class(
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
add_class(
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
add_class(
    "taylor-series-linear-attention",
    "TaylorSeriesLinearAttn",
    {"dim": 16, "heads": 2, "dim_head": 4},
    features(16),
    NT,
    t=T12,
)
add(
    "rotary-embedding-torch",
    "rotate queries, axial",
    lambda: Part(
        load("rotary_embedding_torch").RotaryEmbedding(dim=8, use_xpos=True),
        lambda m, q, k: m.rotate_queries_and_keys(q, k),
    ),
    lambda n, t=12: (torch.randn(n, 2, t, 16), torch.randn(n, 2, t, 16)),
    {0: "n", 2: "t"},
    {0: "n", 2: "t"},
    t=T12,
)
