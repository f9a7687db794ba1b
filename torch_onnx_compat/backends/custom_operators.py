"""Custom operators that are written in Python, `torch.library.custom_op`: the file has what their function computes.

Neither exporter looks into them, and both want a symbolic for each. One that has a symbolic is left to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch_onnx_compat.backends.internals.custom_operators import operator_name, python_operators, without_operators
from torch_onnx_compat.backends.internals.torchscript import symbolic_registry
from torch_onnx_compat.catalogue.registry import Registry


def translated_operators(entries: Registry, table: Iterable[Any]) -> frozenset[str]:
    """The names of the operators that the catalogue or the caller has a symbolic for.

    Args:
        entries: The catalogue, with the caller's entries.
        table: The operators that the caller translates, as for ``torch.onnx.export(custom_translation_table=...)``.
    """
    return frozenset(entry.op for entry in entries.symbolics()) | {*map(operator_name, table)}


def run_functions(translated: Collection[str] | None) -> AbstractContextManager[Any]:
    """While active, calling a custom operator without a symbolic calls its function.

    Packages define operators when they are imported, which may be at a model's first call. So whoever runs a model asks
    anew.

    Args:
        translated: Names of those that have a symbolic; None if that is not known, and all are called as they are.
    """
    names = frozenset() if translated is None else python_operators() - set(translated)
    if not names:
        return nullcontext()
    registry = symbolic_registry()
    return without_operators({name for name in names if registry.get_function_group(name) is None})
