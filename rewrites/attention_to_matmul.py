"""F.scaled_dot_product_attention -> two products and a softmax, where torch's own are refused or wrong.

Math:   torch_onnx_compat.functional.attention; with grouped queries, each head of keys and values serves as many heads
        of queries in turn.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.attention import attend
from torch_onnx_compat.tracing import constant, static_size


# TorchScript knows no grouped queries, dynamo only four axes and float32's precision; both take the square root of a
# negative scale, and err where a mask leaves a query without keys.
@rewrite(
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

    Declines: dropout; head widths that vary. What is left is torch's own.
    """
    unusual = enable_gqa or query.dim() != 4 or query.dtype == torch.float64 or (scale is not None and scale < 0)
    if attn_mask is None and not unusual:
        return NotImplemented  # type: ignore[no-any-return]
    if dropout_p != 0:
        decline(f"dropout_p must be 0, which is not implied by eval(), got {dropout_p}")
    width = static_size(query, -1)
    if width is None and scale is None:
        decline("the width of a head must be fixed, or scale be given")
    factor = scale if scale is not None else (width or 1) ** -0.5
    mask = _causal(query, key) if is_causal else attn_mask
    if enable_gqa:
        heads, groups = static_size(query, -3), static_size(key, -3)
        if heads is None or groups is None:
            decline("the numbers of heads must be fixed with enable_gqa=True")
        key, value = (_repeated(x, groups, heads // groups) for x in (key, value))
    return attend(query, key, value, mask, factor, maskable=not is_causal)


def _causal(query: Tensor, key: Tensor) -> Tensor:
    length, keys = static_size(query, -2), static_size(key, -2)
    if length is not None and keys is not None:
        return constant([[k <= q for k in range(keys)] for q in range(length)], query, torch.bool)
    steps = torch.arange(key.shape[-2], device=query.device)
    return steps <= torch.arange(query.shape[-2], device=query.device).unsqueeze(-1)


def _repeated(x: Tensor, groups: int, times: int) -> Tensor:
    """(..., groups, S, E) with each group as often as it has heads of queries."""
    if times == 1:
        return x
    index = constant([group for group in range(groups) for _ in range(times)], x, torch.int64)
    return x.index_select(-3, index)
