"""x[:, None, i] = value -> x[:, i] = value without the axes that None adds.

Math:   None adds an axis of size 1 to what is read, so a value brought to that shape has one cell there.
Source: https://numpy.org/doc/stable/user/basics.indexing.html#dimensional-indexing-tools
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(Tensor.__setitem__, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def setitem_of_none(self: Tensor, key: Any, value: Any) -> None:
    """Writes to numbers and slices of axes, with new axes between; stock TorchScript loses the write.

    Indices that are tensors or lists are left to torch.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if None not in [k if k is None else ... for k in keys] or not all(_is_basic(k) for k in keys):
        return NotImplemented  # type: ignore[no-any-return]
    if Ellipsis not in [k if k is Ellipsis else None for k in keys]:
        keys = (*keys, Ellipsis)
    if isinstance(value, Tensor) and value.dim():
        value = value.expand(self[keys].shape)
        for axis in reversed(_added(keys, self.dim())):
            value = value.squeeze(axis)
    self[tuple(k for k in keys if k is not None)] = value


def _added(keys: tuple[Any, ...], rank: int) -> list[int]:
    """Which axes of what is read are new."""
    given = sum(key is not None and key is not Ellipsis for key in keys)
    added, axis = [], 0
    for key in keys:
        if key is None:
            added.append(axis)
        if key is Ellipsis:
            axis += rank - given
        elif key is None or isinstance(key, slice):
            axis += 1
    return added


def _is_basic(key: Any) -> bool:
    if isinstance(key, bool):
        return False
    return key is None or key is Ellipsis or isinstance(key, (int, slice, torch.SymInt))
