"""x[key] = value with a value that is broadcast -> the same with the value expanded.

Math:   the value takes the shape of x[key], which is what broadcasting means.
Source: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import static_size, untraced


@rewrite(Tensor.__setitem__, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def setitem_to_expanded(self: Tensor, key: Any, value: Any) -> None:
    """Writes a smaller tensor to a slice or at places; stock TorchScript's file fails on it.

    Numbers, values of the right shape, and masks are left to torch.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if not isinstance(value, Tensor) or not value.dim() or any(map(_is_mask, keys)):
        return NotImplemented  # type: ignore[no-any-return]
    with untraced():
        sizes = [int(size) for size in self[key].shape]
    missing = len(sizes) - value.dim()
    single = [static_size(value, axis) == 1 and sizes[missing + axis] != 1 for axis in range(value.dim())]
    if missing < 0 or not (missing or any(single)):
        return NotImplemented  # type: ignore[no-any-return]
    self[key] = value.expand(self[key].shape)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key.dtype in (torch.bool, torch.uint8)
    return isinstance(key, (bool, list))
