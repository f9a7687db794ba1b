"""What the schemas of torch's operators say: whose results are views, and which arguments are numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals.dynamo import overloads


def names_of_views() -> frozenset[str]:
    """Names of the operators whose results may share the memory of their first argument, and do not write to it."""
    return frozenset(
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::") and _shares(schema.arguments[:1]) and _shares(schema.returns)
    )


def _shares(parts: Sequence[Any]) -> bool:
    """Whether a tensor, or a list of them, is marked as sharing memory that is not written to."""
    return any(
        "Tensor" in str(part.type) and part.alias_info is not None and not part.alias_info.is_write for part in parts
    )


@functools.lru_cache(maxsize=4096)
def places_of_numbers(name: str) -> Mapping[int | str, bool]:
    """The places and names of an operator's arguments that are numbers, and whether each may be a tensor instead.

    Args:
        name: What torch calls the function: ``mul``, ``__and__``, ``__eq__``.
    """
    kinds: dict[int | str, set[str]] = {}
    for overload in overloads(f"aten::{name}") or overloads(f"aten::{name.strip('_')}"):
        arguments = overload._schema.arguments
        if "Tensor" not in (str(argument.type) for argument in arguments):
            continue  # as of two numbers
        for place, argument in enumerate(arguments):
            kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
            for key in (place, argument.name):
                kinds.setdefault(key, set()).add(kind)
    return {key: "Tensor" in kind for key, kind in kinds.items() if "number" in kind and "bool" not in kind}


def is_kept_by_torch(tensor: Tensor) -> bool:
    """Whether torch itself refers to a tensor, as it does to the owner of a view; a detached tensor has none."""
    return tensor._use_count() > 1  # type: ignore[attr-defined,no-any-return]
