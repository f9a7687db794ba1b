"""torch.ones of a complex dtype -> a pair of real tensors.

Math:   torch_onnx_compat.functional.complex.
Source: https://docs.pytorch.org/docs/stable/generated/torch.ones.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair, part_type


# TorchScript knows no complex numbers; dynamo writes a constant that onnxruntime does not load.
@rewrite(torch.ones, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def ones_of_complex_to_pair(*size: Any, dtype: torch.dtype | None = None, out: Any = None, **options: Any) -> Pair:
    """Ones beside zeros; those of a real dtype are left to torch.

    Declines: out=.
    """
    parts = part_type(dtype or torch.get_default_dtype())
    if parts is None:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got a tensor")
    return Pair(torch.ones(*size, dtype=parts, **options), torch.zeros(*size, dtype=parts, **options))
