"""Linear attention: what the kernels of flash-linear-attention are tested against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, N, Part, add, load


def _heads(*kinds: str, heads_first: bool = False) -> Callable[..., Any]:
    """Draws queries, values, decays and gates by the letters q, v, g, b, s, and u."""

    def draw(n: int, t: int = 8) -> Any:
        tensors = []
        for kind in kinds:
            if kind == "u":
                tensors.append(torch.rand(2, 4))
                continue
            if kind == "s":
                tensors.append(torch.randn(n, 2, 4, 4))
                continue
            if kind == "l":
                tensors.append(torch.rand(n, t, 2, 5))
                continue
            x = torch.randn(n, t, 2) if kind in "bd" else torch.randn(n, t, 2, 4)
            signed = {"g": -x.abs(), "d": -x.abs(), "b": x.sigmoid(), "w": x.sigmoid()}
            x = (signed | {"k": nn.functional.normalize(x, dim=-1)}).get(kind, x)
            tensors.append(x.transpose(1, 2).contiguous() if heads_first else x)
        return tuple(tensors)

    return draw


def _naive(
    where: str, name: str, kinds: str, first: bool = False, t: tuple[int, ...] = (8, 5, 12), **more: Any
) -> None:
    def call(_: nn.Module, *args: Tensor) -> Any:
        return getattr(load(f"fla.ops.{where}"), name)(*args, **more)

    axes: list[dict[int, str]] = []
    for kind in kinds:
        axes.append({"s": N, "u": {}}.get(kind, {0: "n", 2: "t"} if first else NT))
    add(
        "flash-linear-attention",
        f"fla {name}",
        lambda: Part(nn.Identity(), call),
        _heads(*kinds, heads_first=first),
        *axes,
        t=t,
    )


LAST = {"output_final_state": True}
_naive("gated_delta_rule.naive", "naive_recurrent_gated_delta_rule", "qkvbd", **LAST)
_naive("gated_delta_rule.naive", "naive_chunk_gated_delta_rule", "qkvdb", chunk_size=4, **LAST)
_naive("kda.naive", "naive_recurrent_kda", "qkvgb", **LAST)
_naive("kda.naive", "naive_chunk_kda", "qkvgb", t=(8, 4, 12), chunk_size=4, **LAST)
_naive("gla.naive", "naive_recurrent_gla", "qkvgs", **LAST)
_naive("rwkv6.recurrent_naive", "naive_recurrent_rwkv6", "qkvgu", first=True, **LAST)
_naive("rwkv6.chunk_naive", "naive_chunk_rwkv6", "qkvgu", first=True, t=(8, 4, 12), chunk_size=4)
_naive("retention.naive", "naive_retention", "qkv", first=True)
_naive("deltaformer.naive", "naive_deltaformer_attn", "qkvb")
_naive("stickbreaking_attn.naive", "naive_stickbreaking_attn", "qkv")
_naive("based.naive", "naive_chunk_based", "qkv", first=True, t=(8, 4, 12), chunk_size=4)
_naive("simple_gla.naive", "naive_chunk_simple_gla", "qkvd", t=(8, 4, 12), chunk_size=4)
_naive("path_attn.naive", "naive_path_attn", "qkvkbd", scale=0.5, chunk_size=4)
_naive("gsa.naive", "naive_recurrent_gsa", "qkvqg", **LAST)
_naive("comba.naive", "naive_recurrent_comba", "qkvkbd", **LAST)
_naive("linear_attn.naive", "naive_recurrent_linear_attn", "qkv", normalize=True, **LAST)
_naive("linear_attn.naive", "naive_chunk_linear_attn", "qkv", t=(64, 128))
_naive("forgetting_attn.naive", "naive_forgetting_attn", "qkvd")
_naive("gdn2.naive", "naive_recurrent_gdn2", "qkvgww", **LAST)
_naive("log_linear_attn.naive", "naive_log_linear_attn", "qkvdl", t=(8, 5, 12))
add(
    "flash-linear-attention",
    "fla naive_recurrent_hgrn",
    lambda: Part(nn.Identity(), lambda _, *args: load("fla.ops.hgrn.naive").naive_recurrent_hgrn(*args, **LAST)),
    lambda n, t=8: (torch.randn(n, t, 4), -torch.rand(n, t, 4), torch.randn(n, 4)),
    NT,
    NT,
    N,
    t=(8, 5, 12),
)
add(
    "flash-linear-attention",
    "fla naive_sinkhorn",
    lambda: Part(nn.Identity(), lambda _, x: load("fla.ops.utils.sinkhorn.naive").naive_sinkhorn(x)),
    lambda n: torch.randn(n, 4, 4),
)
