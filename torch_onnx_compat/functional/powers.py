"""Whole powers of elements, side by side.

Math:   torch multiplies one column by the next; Pow rounds once.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant


def powers(x: Tensor, count: Any, *, increasing: bool) -> Tensor:
    """Powers 0 to count - 1 of (..., n), along a new last axis.

    Args:
        x: Numbers; whole ones become int64.
        count: How many; a number, or a size that varies.
        increasing: Whether power 0 comes first.
    """
    base = x if x.dtype.is_floating_point else x.to(torch.int64)
    if type(count) is int:
        exponents = constant(np.arange(count) if increasing else np.arange(count)[::-1].copy(), base)
    else:
        exponents = torch.arange(count, device=x.device).to(base.dtype)
        exponents = exponents if increasing else count - 1 - exponents
    return torch.pow(base.unsqueeze(-1), exponents)
