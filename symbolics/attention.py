"""Scaled dot-product and multi-head attention, as two products and a softmax.

Math:   softmax(scale q k^T + mask) v. Where every key of a query is masked, scaled_dot_product_attention gives zeros:
        such a query is computed without its mask, which keeps NaN out, and its result is then set to zero.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html;
        ATen/native/transformers/attention.cpp (_safe_softmax)
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.heads import repeat_groups
from torch_onnx_compat.tracing import constant, static_size


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: Any, *, maskable: bool) -> Tensor:
    """Values (..., S, V) mixed for each query: (..., L, V).

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, V).
        mask: True where a key is open to a query, or what is added to the scores; broadcasts with (..., L, S).
        scale: Factor of the scores.
        maskable: Whether the mask may leave a query without any key.
    """
    scores = scaled_scores(query, key, scale)
    if mask is None:
        return torch.softmax(scores, -1) @ value
    is_open = None
    if maskable and mask.dtype == torch.bool:
        is_open = mask.to(torch.int32).amax(-1, keepdim=True).to(torch.bool)
        mask = mask | ~is_open
    elif maskable:
        is_open = mask.amax(-1, keepdim=True) > float("-inf")
        mask = torch.where(is_open, mask, _scalar(0.0, mask))
    output = torch.softmax(apply_mask(scores, mask), -1) @ value
    return output if is_open is None else torch.where(is_open, output, _scalar(0.0, output))


def scaled_scores(query: Tensor, key: Tensor, scale: Any) -> Tensor:
    """How well each key fits each query, (..., L, S)."""
    return (query * scale) @ key.transpose(-2, -1)


def apply_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores with minus infinity where a mask of booleans is False, or with a mask of numbers added."""
    if mask.dtype == torch.bool:
        return torch.where(mask, scores, _scalar(float("-inf"), scores))
    return scores + mask


def _scalar(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)


# Scaled dot-product attention


# TorchScript knows no grouped queries, dynamo only four axes and float32's precision; both take the square root of a
# negative scale, and err where a mask leaves a query without keys.
@decomposition(
    functional.scaled_dot_product_attention,
    needed_on=("torchscript", "dynamo"),
    opset=(11, 22),  # from 23 on there is an operator for it
    exactness=Exactness.ROUNDING,
)
def attention_to_matmul(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention with a mask, grouped queries, a negative scale, float64, or other than four axes.

    Any other attention is left to torch.

    Declines: dropout; without a scale, head widths that vary; with grouped queries, numbers of heads that vary.

    Math: with grouped queries, each head of keys and values serves as many heads of queries in turn.
    """
    unusual = enable_gqa or query.dim() != 4 or query.dtype == torch.float64 or (scale is not None and scale < 0)
    if attn_mask is None and not unusual:
        return NotImplemented
    if dropout_p != 0:
        decline(f"dropout_p must be 0, which is not implied by eval(), got {dropout_p}")
    if scale is None:
        width = static_size(query, -1)
        if width is None:
            decline("the width of a head must be fixed, or scale be given")
        scale = width**-0.5
    mask = _causal_mask(query, key) if is_causal else attn_mask
    if enable_gqa:
        heads, groups = static_size(query, -3), static_size(key, -3)
        if heads is None or groups is None:
            decline("the numbers of heads must be fixed with enable_gqa=True")
        key, value = (repeat_groups(x, groups, heads // groups) for x in (key, value))
    return attend(query, key, value, mask, scale, maskable=not is_causal)


def _causal_mask(query: Tensor, key: Tensor) -> Tensor:
    length, keys = static_size(query, -2), static_size(key, -2)
    if length is not None and keys is not None:
        return constant([[k <= q for k in range(keys)] for q in range(length)], query, torch.bool)
    steps = torch.arange(key.shape[-2], device=query.device)
    return steps <= torch.arange(query.shape[-2], device=query.device).unsqueeze(-1)


# Multi-head attention


# TorchScript freezes the length of the sequence, and what torch decides by the sizes of masks.
@decomposition(functional.multi_head_attention_forward, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def multi_head_attention_to_matmul(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of sequences (L, N, E) with masks.

    Sequences without a batch axis, bias_k, bias_v and add_zero_attn are left to torch.

    Declines: static_k and static_v; dropout in training.

    Math:   batch and heads are one axis of the projected queries, keys and values.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    """
    if query.dim() != 3 or add_zero_attn or bias_k is not None or bias_v is not None:
        return NotImplemented
    if static_k is not None or static_v is not None:
        decline("static_k and static_v must be None")
    if training and dropout_p > 0:
        decline(f"dropout must be 0 in training mode, got {dropout_p}")
    length, keys = static_size(query, 0), static_size(key, 0)
    if use_separate_proj_weight:
        weights: tuple[Any, ...] = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = _thirds(in_proj_weight, embed_dim_to_check)
    biases = _thirds(in_proj_bias, embed_dim_to_check)
    width = embed_dim_to_check // num_heads
    q, k, v = (
        _split_heads(functional.linear(x, weight, bias), width, size)
        for x, weight, bias, size in zip((query, key, value), weights, biases, (length, keys, keys), strict=True)
    )
    mask = _merge_masks(attn_mask, key_padding_mask, num_heads, keys, query)
    if need_weights:
        scores = scaled_scores(q, k, width**-0.5)
        attention = torch.softmax(scores if mask is None else apply_mask(scores, mask), -1)
        mixed = attention @ v
    else:
        mixed = attend(q, k, v, mask, width**-0.5, maskable=not is_causal or key_padding_mask is not None)
    joined = mixed.transpose(0, 1).reshape(query.shape[0] if length is None else length, -1, embed_dim_to_check)
    output = functional.linear(joined, out_proj_weight, out_proj_bias)
    if not need_weights:
        return output, None
    by_head = attention.unflatten(0, (-1, num_heads))
    return output, by_head.mean(1) if average_attn_weights else by_head


def _thirds(packed: Tensor | None, size: int) -> tuple[Any, ...]:
    if packed is None:
        return None, None, None
    return packed[:size], packed[size : 2 * size], packed[2 * size :]


def _split_heads(x: Tensor, width: int, length: int | None) -> Tensor:
    """(L, N, E) as (N * heads, L, width), in one reshape and one transposition; L is `length` if it is fixed."""
    return x.reshape(x.shape[0] if length is None else length, -1, width).transpose(0, 1)


def _merge_masks(
    attn_mask: Tensor | None, padding: Tensor | None, heads: int, keys: int | None, like: Tensor
) -> Tensor | None:
    """Both masks as one that is added to the scores (N * heads, L, S)."""
    mask = None if attn_mask is None else _additive_mask(attn_mask, like)
    if padding is None:
        return mask
    by_head = torch.cat([_additive_mask(padding, like)] * heads, -1)
    by_head = by_head.reshape(-1, 1, padding.shape[1] if keys is None else keys)
    return by_head if mask is None else mask + by_head


def _additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    """Minus infinity where a mask of booleans is True, else 0; a mask of numbers as it is."""
    if mask.dtype != torch.bool:
        return mask
    return torch.where(mask, _scalar(float("-inf"), like), _scalar(0.0, like))
