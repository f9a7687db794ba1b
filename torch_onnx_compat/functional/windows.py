"""Windows of a fixed length as constants.

Math:   of n cells, i = 0, ..., n - 1:
        Bartlett: 1 - |2 i / (n - 1) - 1|. Hamming: alpha - beta cos(2 pi i / (n - 1)).
        Kaiser: I0(beta sqrt(1 - (2 i / (n - 1) - 1)^2)) / I0(beta).
        A periodic window of n cells is the symmetric one of n + 1 cells but its last; a window of one cell is 1.
Source: https://docs.pytorch.org/docs/stable/signal.html; ATen/native/TensorFactories.cpp;
        https://numpy.org/doc/stable/reference/generated/numpy.kaiser.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat.entry import decline


def bartlett(length: Any, periodic: bool, options: dict[str, Any]) -> Tensor:
    """torch.bartlett_window; the arguments of all of these are those of torch's functions."""
    return _window(length, periodic, np.bartlett, options)


def hamming(length: Any, periodic: bool, alpha: float, beta: float, options: dict[str, Any]) -> Tensor:
    """torch.hamming_window."""
    return _window(length, periodic, lambda n: alpha - beta * np.cos(2 * math.pi / (n - 1) * np.arange(n)), options)


def kaiser(length: Any, periodic: bool, beta: float, options: dict[str, Any]) -> Tensor:
    """torch.kaiser_window."""
    return _window(length, periodic, lambda n: np.kaiser(n, beta), options)


def _window(
    length: Any, periodic: bool, symmetric: Callable[[int], npt.NDArray[Any]], options: dict[str, Any]
) -> Tensor:
    if type(length) is not int:
        decline("the window's length must be fixed; make the window in __init__ and keep it as a buffer")
    table = symmetric(length + periodic)[:length] if length > 1 else np.ones(length)
    return torch.tensor(table, dtype=options.get("dtype") or torch.get_default_dtype(), device=options.get("device"))
