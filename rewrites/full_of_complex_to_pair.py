"""torch.full of a complex dtype -> a pair of real tensors.

Math:   torch_onnx_compat.functional.complex.
Source: https://docs.pytorch.org/docs/stable/generated/torch.full.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair, part_type


# TorchScript knows no complex numbers; dynamo writes a constant that onnxruntime does not load.
@rewrite(torch.full, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def full_of_complex_to_pair(
    size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, out: Any = None, **options: Any
) -> Pair:
    """One number everywhere; one of a real dtype is left to torch.

    Declines: out=.
    """
    kinds = {float: torch.get_default_dtype(), complex: torch.get_default_dtype().to_complex()}
    parts = part_type(dtype or kinds.get(type(fill_value), torch.int64))
    if parts is None or not isinstance(fill_value, (int, float, complex)):
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    value = complex(fill_value)
    return Pair(*(torch.full(size, part, dtype=parts, **options) for part in (value.real, value.imag)))
