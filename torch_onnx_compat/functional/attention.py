"""Attention as two products and a softmax, with the rows that no key is open to as eager torch has them.

Math:   softmax(scale q k^T + mask) v; where every key of a query is masked, scaled_dot_product_attention gives zeros. A
        masked row is computed without its mask, which keeps NaN out, and then set to zero.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html;
        ATen/native/transformers/attention.cpp (_safe_softmax)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
        mask = torch.where(is_open, mask, _number(0.0, mask))
    output = torch.softmax(masked(scores, mask), -1) @ value
    return output if is_open is None else torch.where(is_open, output, _number(0.0, output))


def scaled_scores(query: Tensor, key: Tensor, scale: Any) -> Tensor:
    """How well each key fits each query, (..., L, S)."""
    scores: Tensor = (query * scale) @ key.transpose(-2, -1)
    return scores


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores with minus infinity where a mask of booleans is False, or with a mask of numbers added."""
    if mask.dtype == torch.bool:
        return torch.where(mask, scores, _number(float("-inf"), scores))
    return scores + mask


def _number(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)


def split_heads(x: Tensor, width: int, length: int | None) -> Tensor:
    """(L, N, E) as (N * heads, L, width), in one reshape and one transposition.

    Args:
        x: What is split.
        width: Of one head.
        length: L if it is fixed.
    """
    return x.reshape(x.shape[0] if length is None else length, -1, width).transpose(0, 1)
