"""x[i, :, j] = value -> the same with the indexed axes in front.

Math:   indices with whole axes between them read (*b, *others), b being their common shape, which is also what they
        read of the tensor whose indexed axes stand in front.
Source: https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(Tensor.__setitem__, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def setitem_of_split_indices(self: Tensor, key: Any, value: Any) -> None:
    """Writes at indices of several axes that are apart, which stock TorchScript refuses.

    Masks, and slices of less than an axis, are left to torch.
    """
    keys = key if isinstance(key, tuple) else (key,)
    axes = [axis for axis, k in enumerate(keys) if isinstance(k, Tensor)]
    indices = [keys[axis] for axis in axes]
    others = [k for k in keys if not isinstance(k, Tensor)]
    is_split = len(axes) > 1 and axes[-1] - axes[0] + 1 != len(axes)
    if not is_split or any(not isinstance(k, slice) or k != slice(None) for k in others):
        return NotImplemented  # type: ignore[no-any-return]
    if any(index.dtype in (torch.bool, torch.uint8) or not index.dim() for index in indices):
        return NotImplemented  # type: ignore[no-any-return]
    order = [*axes, *(axis for axis in range(self.dim()) if axis not in axes)]
    front = self.permute(order).clone()
    front[tuple(indices)] = value
    self.copy_(front.permute([order.index(axis) for axis in range(self.dim())]))
