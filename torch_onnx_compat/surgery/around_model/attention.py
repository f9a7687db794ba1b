"""The attention weights of modules that compute attention in one fused call, which does not return the weights.

Math:   softmax(q k^T scale + mask), computed in addition to the fused call.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.tracing import current_trace, resume

_SOFTMAX = (functional.softmax, torch.softmax, Tensor.softmax)


class AttentionLog(TorchFunctionMode):
    """While active, records the weights of every attention that a module in `logs` computes.

    Attributes:
        logs: One list for each running module whose weights were asked for; the innermost, last one gets the weights.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[list[Tensor]] = []

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        trace = current_trace()
        try:
            if self.logs and func is functional.multi_head_attention_forward:
                return self._multi_head(func, args, kwargs)
            result = func(*args, **kwargs)
            if self.logs and func is functional.scaled_dot_product_attention:
                self.logs[-1].append(attention_weights(*args, **kwargs))
            elif self.logs and func in _SOFTMAX:
                self.logs[-1].append(result)
            return result
        except Exception:  # a model may catch the error and go on; the trace must go on too
            resume(trace)
            raise

    def _multi_head(self, func: Any, args: Any, kwargs: Any) -> Any:
        wanted = kwargs.get("need_weights", True)
        output, weights = func(*args, **{**kwargs, "need_weights": True, "average_attn_weights": False})
        self.logs[-1].append(weights)
        if not wanted:
            return output, None
        return output, weights.mean(dim=-3) if kwargs.get("average_attn_weights", True) else weights


def attention_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The weights (..., L, S) by which scaled_dot_product_attention multiplies the values (..., S, E)."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    if attn_mask is not None:
        is_bool = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, float("-inf")) if is_bool else scores + attn_mask
    return scores.softmax(-1)
