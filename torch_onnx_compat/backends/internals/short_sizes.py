"""Captures in which torch computes with the short forms of sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_onnx_compat.backends.internals.canonical import canonical
from torch_onnx_compat.backends.internals.find import first_module


@contextmanager
def short_sizes() -> Iterator[None]:
    """While active, every symbolic number is read in its short form, which the next one is made of.

    torch.export bounds each remainder of a size, and does not come to an end for a network that pads to windows at four
    stages: each size holds the one before three times.
    """
    node: Any = first_module("torch.fx.experimental.sym_node").SymNode
    before = node.expr
    node.expr = property(lambda self: _short(before.fget(self)), doc=before.__doc__)
    try:
        yield
    finally:
        node.expr = before


def _short(expression: Any) -> Any:
    return canonical(expression) if getattr(expression, "args", ()) else expression
