"""The element types of floating-point numbers: numpy's for torch's, and the number of a type that is nearest."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

NUMPY_TYPES: dict[torch.dtype, Any] = {
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float32: np.float32,
    torch.float64: np.float64,
}
"""numpy's type for each of torch's."""


def nearest(number: float, dtype: torch.dtype) -> float:
    """The value of a floating-point type that is nearest to a number; infinite for one that is too large."""
    with np.errstate(over="ignore"):
        return float(NUMPY_TYPES[dtype](number))
