"""Operators on tensors whose sizes are long formulas, under torch.export's capture."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.internals import expressions
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.watch import Watcher

MOST = 10
"""Least and largest of sizes in a formula, up to which operators ask nothing about a size."""


class LongSizes(Watcher):
    """Lets such operators ask the example.

    The size of ``torch.cat([x[:step], x[step:] + x[:-step]])`` holds that of ``x`` three times, each in a Min or Max,
    where nobody asks which one is larger. In a loop it grows without end, and sympy compares them all with each other.
    """

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a size of a tensor is a long formula."""
        sizes = (size for tensor in tree.tensors_in((args, kwargs)) for size in tensor.shape)
        return any(isinstance(size, torch.SymInt) and _is_long(size.node.expr) for size in sizes)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call."""
        with internals.size_oblivious(False):
            return self.pass_on(func, args, kwargs)

    def _copy_of(self, func: Any) -> None:
        """Copies no function: what it calls has such sizes too."""


@functools.lru_cache(maxsize=1024)
def _is_long(formula: Any) -> bool:
    return expressions.has_more_extremes(formula, MOST)
