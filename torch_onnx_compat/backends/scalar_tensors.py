"""Gives scalar tensors, those without axes, an axis where a function works along one.

torch takes such a tensor for one with a single element there, and returns tensors without axes. ONNX's operators ask
for an axis, and neither exporter adds it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from torch_onnx_compat.watch import Watcher

_NAMES = """
sum nansum mean nanmean prod var std var_mean std_mean norm logsumexp count_nonzero
amax amin max min aminmax argmax argmin kthvalue softmax log_softmax sort argsort msort topk
squeeze flip index_select gather scatter index_fill index_copy
"""
ALONG_AN_AXIS: frozenset[Any] = frozenset(
    getattr(owner, name) for name in _NAMES.split() for owner in (torch, Tensor) if hasattr(owner, name)
) | {torch.linalg.vector_norm}
"""Functions of a tensor that may name one of its axes; on a tensor without axes they return such tensors."""


class ScalarTensors(Watcher):
    """Makes such a call on a tensor with one element."""

    in_bodies = True

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call works along an axis that its tensor does not have."""
        if func not in ALONG_AN_AXIS or not args or not isinstance(args[0], Tensor):
            return False
        names_an_axis = kwargs.get("dim") is not None or any(not isinstance(a, Tensor) for a in args[1:])
        return names_an_axis and args[0].dim() == 0

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call with an axis, and takes it from the results."""

        def with_axis(value: Any) -> Any:
            return value.reshape(1) if isinstance(value, Tensor) and value.dim() == 0 else value

        args, kwargs = pytree.tree_map(with_axis, (args, kwargs))
        return pytree.tree_map(lambda made: made.reshape(()), self.pass_on(func, args, kwargs))
