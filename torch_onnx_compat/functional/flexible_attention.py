"""Attention whose scores a function of the model changes, and whose mask a function tells: flex_attention.

Math:   softmax(f(scale q k^T)) v, with the scores of closed keys minus infinity. A row of closed keys gives zeros.
        f and the mask take a score with the numbers of its batch, head, query and key; here these are tensors of one
        axis each, (B, 1, 1, 1) to (1, 1, 1, S), so that a call computes all scores at once.
Source: https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def attend_flexibly(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None,
    mask_mod: Callable[..., Tensor] | None,
    scale: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Values mixed for each query, and of each query the logarithm of the sum and the largest score, in powers of two.

    Args:
        query: (B, H, L, E).
        key: (B, H, S, E).
        value: (B, H, S, V).
        score_mod: Changes scores, given the numbers of batch, head, query and key; None keeps them.
        mask_mod: Says which keys are open, given the same numbers; None if all are.
        scale: Factor of the scores.

    Returns:
        (B, H, L, V), (B, H, L) and (B, H, L).

    Raises:
        ValueError: A function makes more of a score than one number.
    """
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = (query.to(dtype) @ key.to(dtype).transpose(-2, -1)) * scale
    numbers = numbers_along(scores.shape, scores.device)
    if score_mod is not None:
        scores = score_mod(scores, *numbers)
    if mask_mod is not None:
        closed = torch.full((), float("-inf"), dtype=dtype, device=scores.device)
        scores = torch.where(mask_mod(*numbers), scores, closed)
    if scores.dim() != 4:
        raise ValueError("the functions of scores and of the mask must give one number for each score")
    largest = scores.amax(-1, keepdim=True)
    if score_mod is None and mask_mod is None:
        weights, total = torch.softmax(scores, -1), torch.logsumexp(scores, -1, keepdim=True)
    else:
        zero, is_closed = torch.zeros((), dtype=dtype, device=scores.device), largest == float("-inf")
        scores = torch.where(is_closed, zero, scores)
        weights = torch.where(is_closed, zero, torch.softmax(scores, -1))
        total = torch.where(is_closed, largest, torch.logsumexp(scores, -1, keepdim=True))
    output = weights.to(query.dtype) @ value.to(query.dtype)
    return output, total.squeeze(-1) / math.log(2), largest.squeeze(-1) / math.log(2)


def numbers_along(shape: Sequence[Any], device: Any) -> list[Tensor]:
    """The numbers along each axis of a shape, as tensors that broadcast to it."""
    places = range(len(shape))
    return [
        torch.arange(shape[place], device=device).reshape([-1 if axis == place else 1 for axis in places])
        for place in places
    ]
