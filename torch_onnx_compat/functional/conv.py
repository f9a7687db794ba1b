"""Convolution whose number of groups varies, as when a batch with kernels of its own is folded into the groups.

ONNX has the number of groups as an attribute. Here each group is a matrix product of its kernels with patches of its
cells; a convolution with constant kernels, a single 1 in each, cuts the patches, and its transpose adds them up.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.entry import decline
from torch_onnx_compat.tracing import constant, static_size

_CONV: tuple[Any, ...] = (functional.conv1d, functional.conv2d, functional.conv3d)
_CONV_TRANSPOSE: tuple[Any, ...] = (
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)


def groups_vary(input: Tensor, groups: Any) -> bool:
    """Whether the number of groups is not known before the file runs; the image is folded into a batch of one then.

    Args:
        input: The argument of the rewrite's body, as static_size wants it.
        groups: Likewise.
    """
    if type(groups) is int:
        return False
    return static_size(input, 1) is None


def conv_by_group(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    """Convolves (1, G C, *image) with (G O, C, *kernel) into (1, G O, *cells); arguments as for torch.conv2d.

    Raises:
        Declined: C or the kernel's size varies.
    """
    channels, *kernel = _fixed(weight)
    images = input.reshape(-1, channels, *_image(input))
    ones = _single_ones(channels, kernel, input)
    if padding == "same":
        patches = convolve_same(images, ones, None, kernel, dilation, channels)
    else:
        padding = 0 if padding == "valid" else padding
        patches = _CONV[len(kernel) - 1](images, ones, None, stride, padding, dilation, channels)
    products = weight.reshape(groups, -1, channels * math.prod(kernel)) @ patches.flatten(2)
    result: Tensor = products.reshape(1, -1, *patches.shape[2:])
    return result if bias is None else result + bias.reshape(-1, *[1] * len(kernel))


def conv_transpose_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    """Convolves, transposed, (1, G C, *image) with (G C, O, *kernel) into (1, G O, *cells); arguments as torch's.

    Raises:
        Declined: O or the kernel's size varies.
    """
    channels, *kernel = _fixed(weight)
    image = _image(input)
    cells = channels * math.prod(kernel)
    products = weight.reshape(groups, -1, cells).transpose(1, 2) @ input.reshape(groups, -1, *image).flatten(2)
    ones = _single_ones(channels, kernel, input)
    convolve = _CONV_TRANSPOSE[len(kernel) - 1]
    summed = convolve(
        products.reshape(-1, cells, *image), ones, None, stride, padding, output_padding, channels, dilation
    )
    result: Tensor = summed.reshape(1, -1, *summed.shape[2:])
    return result if bias is None else result + bias.reshape(-1, *[1] * len(kernel))


def convolve_same(
    input: Tensor, weight: Tensor, bias: Tensor | None, kernel: Sequence[int], dilation: Any, groups: Any
) -> Tensor:
    """Convolves with stride 1 and zeros around the image, so that it keeps its size.

    Args:
        input: (N, C, *image).
        weight: (O, C / groups, *kernel).
        bias: (O,).
        kernel: The kernel's size.
        dilation: As for torch.conv2d.
        groups: Likewise.
    """
    steps = dilation if isinstance(dilation, (tuple, list)) else (dilation,)
    steps = steps * len(kernel) if len(steps) == 1 else steps
    totals = [step * (size - 1) for step, size in zip(steps, kernel, strict=True)]
    # Where the number of zeros is uneven, the end of the axis gets one more.
    if any(total % 2 for total in totals):
        input = functional.pad(input, [n for total in reversed(totals) for n in (0, total % 2)])
    result: Tensor = _CONV[len(kernel) - 1](input, weight, bias, 1, [total // 2 for total in totals], dilation, groups)
    return result


def _fixed(weight: Tensor) -> list[int]:
    sizes = [static_size(weight, axis) for axis in range(1, weight.dim())]
    if None in sizes:
        decline(f"the weight's sizes but the first must be fixed, got {sizes}")
    return [size or 0 for size in sizes]


def _image(input: Tensor) -> list[Any]:
    sizes = [static_size(input, axis) for axis in range(2, input.dim())]
    return [input.shape[axis] if size is None else size for axis, size in enumerate(sizes, start=2)]


def _single_ones(channels: int, kernel: Sequence[int], like: Tensor) -> Tensor:
    """For each channel as many kernels as a kernel has cells, each with a 1 in a cell of its own."""
    cells = math.prod(kernel)
    return constant(np.tile(np.eye(cells).reshape(cells, 1, *kernel), (channels, *[1] * (len(kernel) + 1))), like=like)
