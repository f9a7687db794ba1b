"""Heads of attention: several of queries share one of keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant


def repeat_groups(x: Tensor, groups: int, times: int) -> Tensor:
    """(..., groups, S, E) with each group as often as it has heads of queries."""
    if times == 1:
        return x
    index = constant([group for group in range(groups) for _ in range(times)], x, torch.int64)
    return x.index_select(-3, index)
