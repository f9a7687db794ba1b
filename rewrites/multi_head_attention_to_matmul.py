"""F.multi_head_attention_forward, nn.MultiheadAttention -> products and a softmax for all heads at once.

Math:   batch and heads are one axis of the projected queries, keys and values; torch_onnx_compat.functional.attention.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.attention import attend, masked, scaled_scores, split_heads
from torch_onnx_compat.tracing import static_size


# TorchScript freezes the length of the sequence, and what torch decides by the sizes of masks.
@rewrite(functional.multi_head_attention_forward, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
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
    """Attention of sequences (L, N, E) with masks; those without a batch axis are left to torch.

    Declines: static_k and static_v, bias_k and bias_v, add_zero_attn, dropout in training.
    """
    if query.dim() != 3 or add_zero_attn or bias_k is not None or bias_v is not None:
        return NotImplemented  # type: ignore[no-any-return]
    if static_k is not None or static_v is not None:
        decline("static_k and static_v must be None")
    if training and dropout_p > 0:
        decline(f"dropout must be 0 in training mode, got {dropout_p}")
    length, keys = static_size(query, 0), static_size(key, 0)
    if use_separate_proj_weight:
        weights: tuple[Tensor | None, ...] = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = _thirds(in_proj_weight, embed_dim_to_check)
    biases = _thirds(in_proj_bias, embed_dim_to_check)
    width = embed_dim_to_check // num_heads
    q, k, v = (
        split_heads(functional.linear(x, weight, bias), width, size)  # type: ignore[arg-type]
        for x, weight, bias, size in zip((query, key, value), weights, biases, (length, keys, keys), strict=True)
    )
    mask = _merged(attn_mask, key_padding_mask, num_heads, keys, query)
    if need_weights:
        scores = scaled_scores(q, k, width**-0.5)
        attention = torch.softmax(scores if mask is None else masked(scores, mask), -1)
        mixed = attention @ v
    else:
        mixed = attend(q, k, v, mask, width**-0.5, maskable=not is_causal or key_padding_mask is not None)
    joined = mixed.transpose(0, 1).reshape(query.shape[0] if length is None else length, -1, embed_dim_to_check)
    output = functional.linear(joined, out_proj_weight, out_proj_bias)
    if not need_weights:
        return output, None
    by_head = attention.unflatten(0, (-1, num_heads))
    return output, by_head.mean(1) if average_attn_weights else by_head


def _thirds(packed: Tensor | None, size: int) -> tuple[Tensor | None, ...]:
    if packed is None:
        return None, None, None
    return packed[:size], packed[size : 2 * size], packed[2 * size :]


def _merged(
    attn_mask: Tensor | None, padding: Tensor | None, heads: int, keys: int | None, like: Tensor
) -> Tensor | None:
    """Both masks as one that is added to the scores (N * heads, L, S)."""
    mask = None if attn_mask is None else _added(attn_mask, like)
    if padding is None:
        return mask
    by_head = torch.cat([_added(padding, like)] * heads, -1)
    by_head = by_head.reshape(-1, 1, padding.shape[1] if keys is None else keys)
    return by_head if mask is None else mask + by_head


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    zero, closed = (torch.full((), value, dtype=like.dtype, device=like.device) for value in (0.0, float("-inf")))
    return torch.where(mask, closed, zero)
