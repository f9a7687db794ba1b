"""Compares values of any type that a file may have: arrays, sequences of arrays, texts, nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from torch_onnx_compat.check.compare import TYPE_AND_SHAPE, Comparison, compare
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.files.runner import Array, Value, flatten
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs


def compare_value(case: str, name: str, found: Value, wanted: Value, *, is_random: bool = False) -> Comparison:
    """Compares one output of any type: an array, a sequence of arrays, a text, or nothing.

    Args:
        case: Label of the case.
        name: Name of the output.
        found: What the new file gives.
        wanted: What the original gives.
        is_random: Whether the values differ from run to run, so that types and shapes alone can be compared.
    """
    nan = float("nan")
    one, other = flatten([found]), flatten([wanted])
    if len(one) != len(other):
        return Comparison(case, name, nan, nan, "", False, f"{len(one)} tensors, wanted {len(other)}")
    rows = [_compare_array(case, name, a, b, is_random) for a, b in zip(one, other, strict=True)]
    if not rows:
        return Comparison(case, name, 0.0, 0.0, "equal", True)
    return next((row for row in rows if not row.ok), max(rows, key=lambda row: row.max_rel))


def _compare_array(case: str, name: str, found: Array | None, wanted: Array | None, is_random: bool) -> Comparison:
    nan = float("nan")
    if found is None or wanted is None:
        return Comparison(case, name, 0.0, 0.0, "equal", found is wanted, "" if found is wanted else "one is absent")
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        detail = f"{found.dtype} of shape {found.shape}, wanted {wanted.dtype} of shape {wanted.shape}"
        return Comparison(case, name, nan, nan, "", False, detail)
    if is_random:
        return Comparison(case, name, nan, nan, TYPE_AND_SHAPE, True, "differs from run to run")
    if wanted.dtype.kind in "OUS":
        off = int((found != wanted).sum())
        detail = f"{off} of {wanted.size} values differ" if off else ""
        return Comparison(case, name, 0.0, 0.0, "equal", not off, detail)
    if wanted.dtype.name == "bfloat16":
        narrow = torch.from_numpy(wanted.astype(np.float32)).to(torch.bfloat16)
        return compare(case, name, found.astype(np.float32), narrow)
    if not is_plain(wanted):  # float8, int4 and the like
        wide = np.ascontiguousarray(wanted.astype(np.float32))
        return compare(case, name, found.astype(np.float32), torch.from_numpy(wide), 0.0, 0.0)
    if wanted.dtype.kind == "c":
        kind = np.float32 if wanted.dtype.itemsize == 8 else np.float64
        found, wanted = (np.ascontiguousarray(a)[..., None].view(kind) for a in (found, wanted))
    return compare(case, name, found, torch.from_numpy(np.array(wanted)))


def as_numbers(value: Value) -> Array | None:
    """An output as an array of numbers that noise may excuse; None for others."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or not is_plain(value):
        return None
    return value


def is_same(one: Value, other: Value) -> bool:
    """Whether two outputs are equal to the last bit."""
    a, b = flatten([one]), flatten([other])
    return len(a) == len(b) and all(
        (x is None) == (y is None) and (x is None or y is None or (x.dtype == y.dtype and _equal(x, y)))
        for x, y in zip(a, b, strict=True)
    )


def _equal(one: Array, other: Array) -> bool:
    if one.dtype.kind in "OUS":
        return np.array_equal(one, other)
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def is_plain(array: Array) -> bool:
    """Whether numpy itself has the element type."""
    return array.dtype.type.__module__ == "numpy"


def as_inputs(feeds: Mapping[str, Value]) -> Inputs:
    """Inputs of a file, as those of a model.

    Args:
        feeds: By name.

    Raises:
        CompatError: One is no plain tensor.
    """
    for name, value in feeds.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise CompatError(f"input {name!r} is no plain tensor; wanted numbers that torch has.")
    tensors = tuple(torch.from_numpy(np.array(value)) for value in feeds.values())
    names = tuple(feeds)
    _, structure = tree.flatten(tensors)
    return Inputs(structure, tensors, names, names, tuple((name,) for name in names), tuple({} for _ in names))
