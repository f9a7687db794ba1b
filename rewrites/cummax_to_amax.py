"""torch.cummax -> the maxima of the beginnings of an axis, and the cells that set them.

Math:   torch_onnx_compat.functional.running. A cell is set where it equals its running maximum, or is NaN, which stays
        the running maximum from there on; the last of them is the index.
Source: https://docs.pytorch.org/docs/stable/generated/torch.cummax.html; ATen/native/ReduceOps.cpp
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.running import running_extreme
from torch_onnx_compat.tracing import static_size


@rewrite(torch.cummax, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def cummax_to_amax(input: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Running maximum with its indices; neither exporter has an operator for it.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got two tensors")
    if input.dim() == 0:
        values, indices = input.clone(), torch.zeros_like(input, dtype=torch.int64)
    else:
        values, indices = running_extreme(input, dim, static_size(input, dim), largest=True)
    result: tuple[Tensor, Tensor] = torch.return_types.cummax((values, indices))
    return result
