"""torch.sort(stable=True) -> torch.sort, whose TopK is stable by definition.

Math:   among equal values ONNX's TopK takes the one with the lower index first, in either direction.
Source: https://onnx.ai/onnx/operators/onnx__TopK.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.sort, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def sort_stable(
    input: Tensor, *plain: Any, stable: bool | None = None, dim: int = -1, descending: bool = False, out: Any = None
) -> tuple[Tensor, Tensor]:
    """Sorts, keeping the order of equal values; neither exporter knows the overload that asks for it.

    Declines: out=. Sorting that need not be stable is none of its business.
    """
    if stable is None:
        return NotImplemented  # type: ignore[no-any-return]
    if out is not None:
        decline("out must be None, got two tensors")
    return torch.sort(input, dim=dim, descending=descending)
