"""Complex tensors, which a file holds as pairs of real ones."""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decomposition
from torch_onnx_compat.functional.complex import Pair, part_type, polar


@decomposition(torch.complex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def complex_to_pair(real: Tensor, imag: Tensor) -> Pair:
    """Puts two tensors side by side.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.

    Math: torch_onnx_compat.functional.complex.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.complex.html
    """
    return Pair(*torch.broadcast_tensors(real, imag))


@decomposition(torch.polar, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def polar_to_pair(abs: Tensor, angle: Tensor) -> Pair:
    """Real and imaginary parts from lengths and angles.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.

    Math: abs (cos angle + i sin angle).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.polar.html
    """
    return polar(abs, angle)


# TorchScript knows no complex numbers; dynamo fails on most of what is done with them.
@decomposition(torch.view_as_complex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def view_as_complex_to_pair(input: Tensor) -> Pair:
    """Takes the real and the imaginary parts from the last axis.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.

    Math: torch_onnx_compat.functional.complex.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.view_as_complex.html
    """
    return Pair(input[..., 0], input[..., 1])


# TorchScript knows no complex numbers; dynamo writes a constant that onnxruntime does not load.
@decomposition((torch.zeros, torch.empty), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def zeros_of_complex_to_pair(*size: Any, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """Zeros in both parts; those of a real dtype are left to torch.

    Math: torch_onnx_compat.functional.complex.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.zeros.html
    """
    parts = part_type(dtype or torch.get_default_dtype())
    if parts is None:
        return NotImplemented
    return Pair(torch.zeros(*size, dtype=parts, **options), torch.zeros(*size, dtype=parts, **options))


# TorchScript knows no complex numbers; dynamo writes a constant that onnxruntime does not load.
@decomposition(torch.ones, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def ones_of_complex_to_pair(*size: Any, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """Ones beside zeros; those of a real dtype are left to torch.

    Math: torch_onnx_compat.functional.complex.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ones.html
    """
    parts = part_type(dtype or torch.get_default_dtype())
    if parts is None:
        return NotImplemented
    return Pair(torch.ones(*size, dtype=parts, **options), torch.zeros(*size, dtype=parts, **options))


# TorchScript knows no complex numbers; dynamo writes a constant that onnxruntime does not load.
@decomposition(torch.full, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def full_of_complex_to_pair(size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Pair:
    """One number everywhere; one of a real dtype is left to torch.

    Math: torch_onnx_compat.functional.complex.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.full.html
    """
    kinds = {float: torch.get_default_dtype(), complex: torch.get_default_dtype().to_complex()}
    parts = part_type(dtype or kinds.get(type(fill_value), torch.int64))
    if parts is None or not isinstance(fill_value, (int, float, complex)):
        return NotImplemented
    value = complex(fill_value)
    return Pair(*(torch.full(size, part, dtype=parts, **options) for part in (value.real, value.imag)))
