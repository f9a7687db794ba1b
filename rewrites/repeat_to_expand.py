"""Tensor.repeat of axes of one cell -> expand, for engines without Tile, or whose Tile errs.

Math:   n repeats of an axis of one cell are that axis expanded to n.
Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html
"""

from typing import Any

from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(Tensor.repeat, avoids=("Tile",), exactness=Exactness.BITWISE)
def repeat_to_expand(input: Tensor, *repeats: Any) -> Tensor:
    """Repeats a tensor along its axes, new ones in front among them.

    Declines: an axis of several cells, or of a size that is not fixed, unless it is repeated once.
    """
    times = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
    new = len(times) - input.dim()
    sizes: list[Any] = []
    for axis, number in enumerate(times):
        size = 1 if axis < new else static_size(input, axis - new)
        if type(number) is int and number == 1:
            sizes.append(input.shape[axis - new] if size is None else size)
        elif size == 1:
            sizes.append(number)
        else:
            decline(f"axis {axis} must have one cell, which expand repeats; got {size or 'a size that varies'}")
    return input.expand(sizes).clone()  # a repeat may be written to
