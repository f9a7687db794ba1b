"""torch's transformers: masks that Python looks into."""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite("torch.nn.modules.transformer._detect_is_causal_mask", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def causal_mask_unasked(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Takes every mask for one that is not causal; stock dynamo cannot take a decision from a mask's values.

    Math: is_causal is a hint beside a mask and never changes the result; without it the mask is added.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html, tgt_is_causal
    """
    if mask is None or is_causal is not None:
        return NotImplemented
    return False


# CausalBias is a subclass of Tensor, which a capture does not make of symbolic sizes, and it asks whether its sizes are
# equal, which a trace would freeze. Of numbers both take it as it is.


@rewrite("torch.nn.attention.bias.causal_upper_left", always=True, exactness=Exactness.ROUNDING)
def upper_left_as_mask(queries: Any, keys: Any) -> Tensor:
    """A mask by which each query has the keys up to its own place, whose sizes may vary.

    Math:   key k and query q, k <= q.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.bias.CausalVariant.html
    """
    return _causal(queries, keys, 0)


@rewrite("torch.nn.attention.bias.causal_lower_right", always=True, exactness=Exactness.ROUNDING)
def lower_right_as_mask(queries: Any, keys: Any) -> Tensor:
    """A mask by which the last query has all keys, whose sizes may vary.

    Math:   key k of s and query q of n, k <= q + s - n.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.bias.CausalVariant.html
    """
    return _causal(queries, keys, keys - queries)


def _causal(queries: Any, keys: Any, offset: Any) -> Tensor:
    if type(queries) is int and type(keys) is int:
        return NotImplemented
    return torch.arange(keys) <= torch.arange(queries).unsqueeze(-1) + offset
