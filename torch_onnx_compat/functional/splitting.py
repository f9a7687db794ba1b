"""Splitting an axis into slices, one node each.

Source: https://docs.pytorch.org/docs/stable/generated/torch.tensor_split.html
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.tracing import static_size


def split_axis(x: Tensor, places: Any, dim: int) -> tuple[Tensor, ...]:
    """Parts of an axis between places, or that many equal parts.

    Args:
        x: One of the arguments of the rewrite that runs.
        places: Where the parts end, or their number.
        dim: Axis, from 0.
    """
    if isinstance(places, int):
        size = static_size(x, dim)
        if size is None:
            return torch.tensor_split(x, places, dim=dim)
        places = range(size // places, size, size // places)
    bounds = pairwise((0, *places, None))
    return tuple(x[(slice(None),) * dim + (slice(start, end),)] for start, end in bounds)
