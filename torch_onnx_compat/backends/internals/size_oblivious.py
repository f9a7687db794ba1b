"""Captures in which operators do not ask whether a size is 0 or 1: torch's *size oblivious* reasoning."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from torch_onnx_compat.backends.internals.find import first_module


def size_oblivious(is_oblivious: bool = True) -> AbstractContextManager[object]:
    """Has operators take the way that holds for sizes in general, where torch would ask the example.

    torch.onnx's own captures do so. Otherwise ``x[:, -6:]`` holds on one side of the axis' end only, a size that is 1
    at the example stays 1, and each answer is a guard, which makes every later question slower. torch 2.6 knows no such
    way.

    Args:
        is_oblivious: False has torch ask the example again, inside of such a capture.
    """
    config = first_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):
        return nullcontext()
    patch: AbstractContextManager[object] = config.patch(backed_size_oblivious=is_oblivious)
    return patch
