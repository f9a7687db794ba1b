"""Complex tensors, which a file holds as pairs of real ones: what makes them of real tensors and of numbers.

Math: torch_onnx_compat.functional.complex.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decomposition
from torch_onnx_compat.functional.complex import Pair, part_type, polar

OF_PAIRS = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
"""Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that are applied to them."""
OF_REAL = Declaration(needed_on=("torchscript",), always=True, exactness=Exactness.ROUNDING)
"""Always: functions of complex tensors that dynamo has wrong or not at all need pairs."""


# Of real tensors


@decomposition(torch.complex, **OF_REAL)
def complex_to_pair(real: Tensor, imag: Tensor) -> Pair:
    """Complex numbers of their real and imaginary parts."""
    return Pair(*torch.broadcast_tensors(real, imag))


@decomposition(torch.polar, **OF_REAL)
def polar_to_pair(abs: Tensor, angle: Tensor) -> Pair:
    """Complex numbers of their absolute values and angles.

    Math: abs (cos angle + i sin angle).
    """
    return polar(abs, angle)


@decomposition(torch.view_as_complex, **OF_REAL)
def view_as_complex_to_pair(input: Tensor) -> Pair:
    """Complex numbers of the last axis, which holds the real and the imaginary part."""
    return Pair(input[..., 0], input[..., 1])


# Of numbers: tensors of a real dtype are left to torch; stock dynamo writes a constant that onnxruntime does not load


@decomposition((torch.zeros, torch.empty), **OF_PAIRS)
def zeros_of_complex_to_pair(*size: Any, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """Complex zeros."""
    return _pair(torch.zeros, size, dtype, options)


@decomposition(torch.ones, **OF_PAIRS)
def ones_of_complex_to_pair(*size: Any, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """Complex ones: ones in the real parts, zeros in the imaginary ones."""
    return _pair(torch.ones, size, dtype, options)


def _pair(
    real: Callable[..., Tensor], size: tuple[Any, ...], dtype: torch.dtype | None, options: Mapping[str, Any]
) -> Pair:
    """What a function of a size makes as the real part, beside zeros."""
    parts = part_type(dtype or torch.get_default_dtype())
    if parts is None:
        return NotImplemented
    return Pair(real(*size, dtype=parts, **options), torch.zeros(*size, dtype=parts, **options))


@decomposition(torch.full, **OF_PAIRS)
def full_of_complex_to_pair(size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """One complex number everywhere."""
    kinds = {float: torch.get_default_dtype(), complex: torch.get_default_dtype().to_complex()}
    parts = part_type(dtype or kinds.get(type(fill_value), torch.int64))
    if parts is None or not isinstance(fill_value, (int, float, complex)):
        return NotImplemented
    value = complex(fill_value)
    return Pair(*(torch.full(size, part, dtype=parts, **options) for part in (value.real, value.imag)))
