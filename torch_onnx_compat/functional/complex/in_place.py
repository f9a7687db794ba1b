"""``add_`` and other in-place methods of complex tensors: the result is copied into both parts, and so into views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch_onnx_compat.functional.complex import elementary, products  # noqa: F401  (they register handlers)
from torch_onnx_compat.functional.complex.functions import BY_PARTS, copy
from torch_onnx_compat.functional.complex.pair import HANDLERS, Pair, spellings


def _register() -> None:
    """Registers the methods of all functions of values; those that only move elements change the shape in place."""
    methods = {getattr(function, "__name__", ""): handler for function, handler in HANDLERS.items()}
    for name, handler in methods.items():
        if name not in BY_PARTS or name in ("neg", "negative"):
            for function in spellings(f"{name}_"):
                HANDLERS.setdefault(function, functools.partial(_write, handler))


def _write(handler: Callable[..., Any], input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, Pair):
        return NotImplemented  # torch raises its own error for a complex result in a real tensor
    result = handler(input, *args, **kwargs)
    return NotImplemented if result is NotImplemented else copy(input, result)


_register()
