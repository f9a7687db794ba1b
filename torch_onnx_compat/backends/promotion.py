"""Computes integers with fractions in the default floating-point type, as torch does, where an exporter would not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.tracing import below_function_modes
from torch_onnx_compat.watch import Watcher

ARITHMETIC = frozenset(
    getattr(owner, name)
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "rsub")
    for owner in (torch, Tensor)
    if hasattr(owner, name)
) | frozenset(getattr(Tensor, f"__r{name}__") for name in ("add", "sub", "mul", "truediv", "div"))
"""Functions of a tensor and a number."""


class Promotion(Watcher):
    """Casts a tensor of integers that is computed with a float of Python.

    Where all sizes are fixed, TorchScript computes ``arange(n) * 0.5`` itself, in float64: as with a tensor of 0.5. And
    torch.onnx refuses ``0.5 - arange(n)`` as torch.export captures it.
    """

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call computes so. What has no axes may stand for a number of Python, whose floats are wider."""
        if func not in ARITHMETIC or len(args) < 2 or type(args[1]) is not float or not isinstance(args[0], Tensor):
            return False
        with below_function_modes():
            is_float = args[0].is_floating_point() or args[0].is_complex()
            return bool(args[0].dim()) and not is_float

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call on floats."""
        return self.pass_on(func, (args[0].to(torch.get_default_dtype()), *args[1:]), kwargs)

    def _copy_of(self, func: Any) -> None:
        """Copies no function: the enclosing modes must see it first, since they may replace it."""
