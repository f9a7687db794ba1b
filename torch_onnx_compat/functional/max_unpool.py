"""max_unpool as values scattered over zeros.

Math:   an index is a place in the flattened last axes of the output; every cell that no index names is 0. Where no size
        is asked for, an axis of n cells grows to (n - 1) * stride + kernel - 2 * padding.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool2d.html
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from torch_onnx_compat.tracing import static_size


def max_unpool(
    input: Tensor, indices: Tensor, axes: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    """Puts (..., *sizes) at the places that the indices name.

    Args:
        input: The argument of the rewrite's body.
        indices: The places, as max_pool returns them.
        axes: How many of the last axes are unpooled.
        kernel_size: For all axes or each.
        stride: The same; None means the kernel's size.
        padding: The same.
        output_size: Sizes of the last axes, or of all; None for those that follow from the rest.
    """
    kernels, paddings = _each(kernel_size, axes), _each(padding, axes)
    strides = _each(stride, axes) if stride is not None else kernels
    first = input.dim() - axes
    known = [static_size(input, axis) for axis in range(input.dim())]
    sizes = [input.shape[axis] if size is None else size for axis, size in enumerate(known)]
    if output_size is not None:
        outputs = list(output_size)[-axes:]
    else:
        windows = zip(sizes[first:], kernels, strides, paddings, strict=True)
        outputs = [(n - 1) * step + kernel - 2 * pad for n, kernel, step, pad in windows]
    canvas = input.new_zeros((*sizes[:first], math.prod(outputs)))
    filled = canvas.scatter(-1, indices.flatten(first), input.flatten(first))
    return filled.reshape((*sizes[:first], *outputs))


def _each(value: Any, axes: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
