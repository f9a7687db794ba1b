"""Repairs a TorchScript trace: writes to views, which it loses, and functions of integers, whose type it gets wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.writes import ViewWrites
from torch_onnx_compat.tracing import below_function_modes, is_tracing

_NAMES = (
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "arcsin",
    "arccos",
    "arctan",
    "tanh",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "erf",
)
FUNCTIONS = frozenset(getattr(owner, name) for name in _NAMES for owner in (torch, Tensor))
"""Functions of one tensor that convert integers to the default floating-point type."""

DATA: Any = Tensor.data.__get__  # type: ignore[attr-defined]
"""What ``x.data`` calls."""


class Repairs(ViewWrites):
    """Casts integers before elementary functions, as torch does inside them, and makes writes to views."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is a view, a write, or an elementary function of integers."""
        return func == DATA or (func in FUNCTIONS and _is_of_integers(args)) or super().concerns(func, args, kwargs)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes one call, with integers cast."""
        if func in FUNCTIONS and is_tracing() and _is_of_integers(args):
            args = (args[0].to(torch.get_default_dtype()), *args[1:])
        if func == DATA and is_tracing() and not isinstance(args[0], nn.Parameter):
            func = Tensor.detach  # a trace takes x.data for a constant
        return super().watch(func, args, kwargs)


def _is_of_integers(args: tuple[Any, ...]) -> bool:
    if not args or not isinstance(args[0], Tensor):
        return False
    with below_function_modes():
        return not (args[0].is_floating_point() or args[0].is_complex())
