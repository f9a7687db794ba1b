"""torch.trace -> sum of what a mask of the diagonal leaves.

Math:   torch_onnx_compat.functional.diagonals.
Source: https://docs.pytorch.org/docs/stable/generated/torch.trace.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.diagonals import diagonal_mask
from torch_onnx_compat.tracing import static_size


@rewrite(torch.trace, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def trace_to_sum(input: Tensor) -> Tensor:
    """Sum of a diagonal; stock TorchScript lacks it, dynamo multiplies what lies beside it by 0, NaN or not."""
    rows, columns = (static_size(input, axis) for axis in (0, 1))
    mask = diagonal_mask(
        input.shape[0] if rows is None else rows, input.shape[1] if columns is None else columns, 0, input
    )
    return torch.where(mask, input, torch.zeros((), dtype=input.dtype, device=input.device)).sum()
