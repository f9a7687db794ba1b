"""Lists with tensors in an index, as in ``x[:, [i, j]]``: torch copies their numbers into a constant."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.watch import Watcher

_INDEXED = (Tensor.__getitem__, Tensor.__setitem__)


class IndexLists(Watcher):
    """Makes tensors of them, which exporters follow."""

    in_bodies = True

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call has such an index; a list that is the whole index is one index for each axis to torch."""
        return func in _INDEXED and isinstance(args[1], (tuple, list)) and any(map(_is_list_of_tensors, args[1]))

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call with tensors in place of the lists."""
        index = tuple(_stack(part) if _is_list_of_tensors(part) else part for part in args[1])
        return self.pass_on(func, (args[0], index, *args[2:]), kwargs)

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""


def _is_list_of_tensors(part: Any) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(x, Tensor) or _is_list_of_tensors(x) for x in part)


def _stack(part: Any) -> Tensor:
    if isinstance(part, torch.SymInt):
        return torch.full((), part, dtype=torch.int64)  # torch.tensor would fix it
    if not isinstance(part, (list, tuple)):
        return part if isinstance(part, Tensor) else torch.tensor(part)
    items = [_stack(item) for item in part]
    dtype = functools.reduce(torch.promote_types, (item.dtype for item in items))
    return torch.stack([item.to(dtype) for item in items])
