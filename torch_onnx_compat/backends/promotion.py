"""Casts integers to the default floating-point type where torch computes in it, and an exporter would not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.watch import Watcher


def _functions(names: str) -> frozenset[Any]:
    return frozenset(getattr(owner, n) for n in names.split() for owner in (torch, Tensor) if hasattr(owner, n))


ELEMENTARY = _functions(
    "sin cos tan asin acos atan arcsin arccos arctan tanh exp log log2 log10 log1p sqrt rsqrt sigmoid erf"
)
"""Functions of one tensor. A TorchScript trace gets the type of their results wrong."""

ARITHMETIC = _functions("add sub subtract mul multiply div divide true_divide rsub") | frozenset(
    getattr(Tensor, f"__r{name}__") for name in ("add", "sub", "mul", "truediv", "div")
)
"""Functions of a tensor and a number. If the number is a float, so are the results.

Where all sizes are fixed, TorchScript computes ``arange(n) * 0.5`` itself, in float64: as with a tensor of 0.5. And
torch.onnx refuses ``0.5 - arange(n)`` as torch.export captures it.
"""


class Promotion(Watcher):
    """Casts the integers of such a call."""

    in_bodies = True

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call computes with integers in floating point."""
        if not args or not isinstance(args[0], Tensor):
            return False
        if func not in ELEMENTARY and not (func in ARITHMETIC and len(args) > 1 and type(args[1]) is float):
            return False
        is_integer = not (args[0].is_floating_point() or args[0].is_complex())
        # What has no axes may stand for a number of Python, and its product with a float for one of float64.
        return is_integer and (func in ELEMENTARY or args[0].dim() > 0)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call on floats."""
        return self.pass_on(func, (args[0].to(torch.get_default_dtype()), *args[1:]), kwargs)

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""
