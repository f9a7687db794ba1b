"""torch.argsort(stable=True) -> torch.argsort, whose TopK is stable by definition.

Math:   among equal values ONNX's TopK takes the one with the lower index first, in either direction.
Source: https://onnx.ai/onnx/operators/onnx__TopK.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.argsort, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def argsort_stable(
    input: Tensor, *plain: Any, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Tensor:
    """Indices that sort, keeping the order of equal values; neither exporter knows the overload that asks for it."""
    if stable is None:
        return NotImplemented  # type: ignore[no-any-return]
    return torch.argsort(input, dim=dim, descending=descending)
