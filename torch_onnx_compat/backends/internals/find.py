"""Finds modules of torch whose place differs between versions."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from torch_onnx_compat.errors import CompatError


def first_module(*names: str) -> Any:
    """The first of some modules that this version of torch has.

    Raises:
        CompatError: It has none of them.
    """
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise CompatError(
        f"torch {torch.__version__} has none of {', '.join(names)}; this version of torch_onnx_compat does not know it."
    )
