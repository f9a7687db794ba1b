"""The counts of writes to tensors, by which autograd notices that a value it needs was overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def versions_of(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """How often each tensor was written to."""
    return tuple(tensor._version for tensor in tensors)


def set_versions(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Lets tensors count as written to as often as before; torch up to 2.6 takes one tensor at a time."""
    setter: Any = torch._C._autograd._unsafe_set_version_counter
    if tuple(map(int, torch.__version__.split(".")[:2])) >= _SEVERAL_AT_ONCE:
        setter(tuple(tensors), tuple(versions))
        return
    for tensor, version in zip(tensors, versions, strict=True):
        setter(tensor, version)


_SEVERAL_AT_ONCE = (2, 7)
"""The first version of torch that takes several tensors."""
