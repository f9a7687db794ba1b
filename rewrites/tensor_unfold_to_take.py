"""Tensor.unfold -> the axis read by a table of windows.

Math:   window i is made of cells i * step up to, not including, i * step + size; there are (n - size) // step + 1.
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.unfold.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size


@rewrite(Tensor.unfold, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def tensor_unfold_to_take(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of an axis, as a new last axis; stock TorchScript puts them elsewhere, or slices one by one."""
    axis = dimension % self.dim()
    length = static_size(self, axis)
    if length is None:
        starts = torch.arange(0, self.shape[axis] - size + 1, step, device=self.device)
        table = starts.unsqueeze(1) + torch.arange(size, device=self.device)
    else:
        cells = [[start + cell for cell in range(size)] for start in range(0, length - size + 1, step)]
        table = constant(cells, like=self, dtype=torch.int64)
    return take(self, table, axis).movedim(axis + 1, self.dim())
