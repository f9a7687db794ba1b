"""Arithmetic of lengths that may depend on the inputs: a number, a symbolic size, or an int64 tensor of shape ()."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from torch_onnx_compat.control_flow.run.session import as_tensor


def divided_up(length: Any, size: Any) -> Any:
    """How many pieces of a size a length has, the last of which may be shorter: the quotient, rounded up."""
    above = length + (size - 1)
    return torch.div(above, size, rounding_mode="floor") if isinstance(above, Tensor) else above // size


def at_least(length: Any, least: int) -> Any:
    """A length, or a number where that is more."""
    return length.clamp(min=least) if isinstance(length, Tensor) else torch.sym_max(length, least)


def at_most(length: Any, most: Any) -> Any:
    """A length, or another where that is less."""
    if isinstance(length, Tensor) and type(most) is int:
        return length.clamp(max=most)
    if isinstance(length, Tensor) or isinstance(most, Tensor):
        return torch.minimum(as_tensor(length), as_tensor(most))
    return torch.sym_min(length, most)


def is_scannable(length: Any) -> bool:
    """Whether a length is a symbolic size that is at least 1 if every dynamic axis is: a Scan needs one row."""
    if not isinstance(length, torch.SymInt) or has_free_unbacked_symbols(length):
        return False
    least = length.node.expr
    return bool(least.subs(dict.fromkeys(least.free_symbols, 1)) >= 1)
