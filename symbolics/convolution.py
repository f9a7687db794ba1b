"""Convolutions, their transposes, and circular padding.

The number of groups varies where a batch with kernels of its own is folded into the groups; ONNX has that number as an
attribute.

Math:   each group is a matrix product of its kernels with patches of its cells. A convolution with constant kernels, a
        single 1 in each, cuts the patches; its transpose adds them up.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional.arithmetic import varies
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import computes_with_sizes, constant, is_tracing, static_size

CONVOLUTIONS: tuple[Any, ...] = (torch.conv1d, torch.conv2d, torch.conv3d)
TRANSPOSES: tuple[Any, ...] = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)
"""By the number of the image's axes, less 1."""

ON_BOTH = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)

Sizes = int | tuple[int, ...]


# A number of groups that varies; both exporters refuse it


@decomposition(CONVOLUTIONS, **ON_BOTH)
def conv_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves images with kernels of their own, folded into the groups, as StyleGAN2 and trackers do.

    Declines: a kernel whose size, or number of channels, varies.
    """
    if not _groups_vary(input, weight, groups):
        return NotImplemented
    if input.dim() < weight.dim():
        return convolve_by_group(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).flatten(0, 1)
    return convolve_by_group(input, weight, bias, stride, padding, dilation, groups)


def convolve_by_group(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    """Convolves (N, G C, *image) with (G O, C, *kernel) into (N, G O, *cells); arguments as for torch.conv2d.

    Raises:
        Declined: C or the kernel's size varies.
    """
    channels, *kernel = _fixed_sizes(weight, 1, "the weight's sizes but the first")
    images = input.reshape(-1, channels, *_shape(input)[2:])
    ones = _single_ones(channels, kernel, input)
    if padding == "same":
        patches = convolve_same(images, ones, None, kernel, dilation, channels)
    else:
        padding = 0 if padding == "valid" else padding
        patches = CONVOLUTIONS[len(kernel) - 1](images, ones, None, stride, padding, dilation, channels)
    cells = channels * math.prod(kernel)
    products = weight.reshape(groups, -1, cells) @ patches.reshape(_shape(input)[0], groups, cells, -1)
    return _add_bias(products.flatten(1, 2).unflatten(2, patches.shape[2:]), bias)


@decomposition(TRANSPOSES, **ON_BOTH)
def conv_transpose_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Enlarges images by kernels of their own, folded into the groups, as StyleGAN2 does.

    Declines: a kernel whose size, or number of output channels, varies.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
    """
    if not _groups_vary(input, weight, groups):
        return NotImplemented
    options = (stride, padding, output_padding, groups, dilation)
    if input.dim() < weight.dim():
        return convolve_transposed_by_group(input.unsqueeze(0), weight, bias, *options).flatten(0, 1)
    return convolve_transposed_by_group(input, weight, bias, *options)


def convolve_transposed_by_group(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    """Convolves, transposed, (N, G C, *image) with (G C, O, *kernel) into (N, G O, *cells); arguments as torch's.

    Raises:
        Declined: O or the kernel's size varies.
    """
    channels, *kernel = _fixed_sizes(weight, 1, "the weight's sizes but the first")
    cells = channels * math.prod(kernel)
    images = input.flatten(2).unflatten(1, (groups, -1))
    products = weight.reshape(groups, -1, cells).transpose(1, 2) @ images
    ones = _single_ones(channels, kernel, input)
    products = products.reshape(-1, cells, *_shape(input)[2:])
    transpose = TRANSPOSES[len(kernel) - 1]
    summed = transpose(products, ones, None, stride, padding, output_padding, channels, dilation)
    return _add_bias(summed.unflatten(0, (_shape(input)[0], groups)).flatten(1, 2), bias)


def _groups_vary(input: Tensor, weight: Tensor, groups: Any) -> bool:
    """Whether the file decides the number of groups, as it does where the channels vary."""
    if type(groups) is int:
        return False
    return static_size(input, 1 - weight.dim()) is None


def _fixed_sizes(weight: Tensor, first: int, name: str) -> list[Any]:
    """Sizes of the weight's axes from the first one on.

    Raises:
        Declined: One of them varies.
    """
    sizes = [static_size(weight, axis) for axis in range(first, weight.dim())]
    if None in sizes:
        decline(f"{name} must be fixed, got {sizes}")
    return sizes


def _shape(input: Tensor) -> list[Any]:
    sizes = [static_size(input, axis) for axis in range(input.dim())]
    return [input.shape[axis] if size is None else size for axis, size in enumerate(sizes)]


def _single_ones(channels: int, kernel: Sequence[int], like: Tensor) -> Tensor:
    """For each channel as many kernels as a kernel has cells, each with a 1 in a cell of its own."""
    cells = math.prod(kernel)
    return constant(np.tile(np.eye(cells).reshape(cells, 1, *kernel), (channels, *[1] * (len(kernel) + 1))), like=like)


def _add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias.reshape(-1, *[1] * (x.dim() - 2))


# Kernels that are computed with sizes, of which TorchScript must know the size


@decomposition(CONVOLUTIONS, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def conv_of_computed_kernel(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves with a kernel such as `taps.repeat(channels, 1, 1, 1)`, where the number is a size of the image.

    Arguments as for torch.conv2d. What is left alone: kernels that are computed without sizes, or whose size varies.

    Math:   the number of groups is the image's channels over those of a kernel, `weight.shape[1]`.
    """
    sized = _with_size(weight, input)
    if sized is None:
        return NotImplemented
    channels, own = static_size(input, 1 - weight.dim()), static_size(weight, 1)
    if channels is not None and own:
        groups = channels // own
    return CONVOLUTIONS[weight.dim() - 3](input, sized, bias, stride, padding, dilation, groups)


@decomposition(TRANSPOSES, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def conv_transpose_of_computed_kernel(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Convolves, transposed, with a kernel such as `taps.repeat(channels, 1, 1, 1)`.

    Arguments as for torch.conv_transpose2d. What is left alone: as for `conv_of_computed_kernel`.
    """
    sized = _with_size(weight, input)
    if sized is None:
        return NotImplemented
    return TRANSPOSES[weight.dim() - 3](input, sized, bias, stride, padding, output_padding, groups, dilation)


def _with_size(weight: Tensor, input: Tensor) -> Tensor | None:
    """A kernel that the trace computes with sizes, reshaped to what it is.

    None for other kernels, and where a size of it varies; also where none of the image's does: TorchScript knows all
    sizes then.
    """
    if not is_tracing() or not computes_with_sizes(weight):
        return None
    sizes = [static_size(weight, axis) for axis in range(weight.dim())]
    is_fixed = all(static_size(input, axis) is not None for axis in range(input.dim()))
    if is_fixed or None in sizes[2:] or sizes.count(None) > 1:
        return None
    return weight.reshape([-1 if size is None else size for size in sizes])


# Strides, padding and dilation that a size decides, where ONNX has attributes


@decomposition(CONVOLUTIONS, **ON_BOTH)
def conv_of_varying_steps(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolves with a stride, a padding or a dilation that varies with a size; arguments as for torch.conv2d.

    Declines: a dilation that varies, of a kernel whose size or number of channels varies.

    Math:   a stride leaves out places of the one of stride 1. With a dilation the cell i of a kernel meets the image
            moved by i times the dilation; the images so moved become channels.
    """
    axes = weight.dim() - 2
    steps, gaps = _each(stride, axes), _each(dilation, axes)
    if not any(map(varies, (*steps, *gaps, *([] if isinstance(padding, str) else _each(padding, axes))))):
        return NotImplemented
    is_dilated = any(map(varies, gaps))
    kernel = _fixed_sizes(weight, 1, "the weight's sizes but the first")[1:] if is_dilated else weight.shape[2:]
    zeros = _zeros_around(padding, kernel, gaps)
    x = functional.pad(input, [number for pair in reversed(zeros) for number in pair])
    for axis, gap in enumerate(gaps):
        if varies(gap):
            x, weight = _move_to_channels(x, weight, axis, gap)
            gaps[axis] = 1
    fixed = [1 if varies(step) else step for step in steps]
    made: Tensor = CONVOLUTIONS[axes - 1](x, weight, bias, fixed, 0, gaps, groups)
    kept: tuple[Any, ...] = (..., *[slice(None, None, step if varies(step) else None) for step in steps])
    return made[kept]


def _zeros_around(padding: Any, kernel: Sequence[Any], gaps: Sequence[Any]) -> list[tuple[Any, Any]]:
    """How many zeros go before and behind each axis."""
    if padding != "same":
        return [(zeros, zeros) for zeros in _each(0 if padding == "valid" else padding, len(kernel))]
    totals = [gap * (size - 1) for gap, size in zip(gaps, kernel, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _move_to_channels(x: Tensor, weight: Tensor, axis: int, gap: Any) -> tuple[Tensor, Tensor]:
    """An image and a kernel in which the cells of the kernel on an axis are channels, and one is left there."""
    channels, cells = x.dim() - weight.dim() + 1, weight.shape[axis + 2]
    place = channels + 1 + axis
    length = x.shape[place] - (cells - 1) * gap
    moved = torch.stack([x.narrow(place, cell * gap, length) for cell in range(cells)], channels + 1)
    kernel = weight.movedim(axis + 2, 2).flatten(1, 2).unsqueeze(axis + 2)
    return moved.flatten(channels, channels + 1), kernel


# Padding


# TorchScript writes auto_pad, which onnxruntime refuses together with dilation.
@decomposition(CONVOLUTIONS, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def conv_same_to_pad(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution that keeps the image's size, with gaps in its kernel.

    Declines: a kernel whose size varies.
    """
    if padding != "same" or all(step == 1 for step in _each(dilation, weight.dim() - 2)):
        return NotImplemented
    return convolve_same(input, weight, bias, _fixed_sizes(weight, 2, "the kernel's size"), dilation, groups)


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
    totals = [step * (size - 1) for step, size in zip(_each(dilation, len(kernel)), kernel, strict=True)]
    # Where the number of zeros is uneven, the end of the axis gets one more.
    if any(total % 2 for total in totals):
        input = functional.pad(input, [n for total in reversed(totals) for n in (0, total % 2)])
    return CONVOLUTIONS[len(kernel) - 1](input, weight, bias, 1, [total // 2 for total in totals], dilation, groups)


# ConvTranspose has output_padding as an attribute; nn.ConvTranspose2d(...)(x, output_size=...) computes it.
@decomposition(TRANSPOSES, **ON_BOTH)
def conv_transpose_to_size(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Convolves, transposed, to a size that varies; (N, C, L), (N, C, H, W) or (N, C, D, H, W), or without N.

    Math:   output_padding adds cells at the end of an axis and changes none before them. The one that output_size asks
            for is smaller than the stride, so the result with the largest one begins with the result wanted.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
    """
    axes = weight.dim() - 2
    wanted = _each(output_padding, axes)
    if not any(map(varies, wanted)):
        return NotImplemented
    most = [step - 1 for step in _each(stride, axes)]
    given = [m if varies(w) else w for w, m in zip(wanted, most, strict=True)]
    x = TRANSPOSES[axes - 1](input, weight, bias, stride, padding, given, groups, dilation)
    for axis, (w, m) in enumerate(zip(wanted, most, strict=True), x.dim() - axes):
        if varies(w):
            x = x.narrow(axis, 0, x.shape[axis] - (m - w))
    return x


@decomposition(functional.pad, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def circular_pad_of_crop(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Crops and wraps around; stock TorchScript repeats what negative padding takes away.

    Math:   negative padding takes elements away before the others are repeated.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
    """
    if mode != "circular" or not any(type(width) is int and width < 0 for width in pad):
        return NotImplemented
    crop = [width if type(width) is int and width < 0 else 0 for width in pad]
    rest = [0 if less else width for width, less in zip(pad, crop, strict=True)]
    return functional.pad(functional.pad(input, crop), rest, mode="circular")


@decomposition(functional.pad, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def circular_pad_of_varying_width(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Wraps around by as many cells as sizes say; stock TorchScript wants the numbers fixed.

    Math:   what is left of n cells by negative padding are m cells from the first on, and cell i of the output is
            cell (i - left) mod m of these.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
    """
    if mode != "circular" or not any(map(varies, pad)):
        return NotImplemented
    for number, (left, right) in enumerate(zip(pad[::2], pad[1::2], strict=True), 1):
        axis = input.dim() - number
        if not (type(left) is type(right) is int and left == right == 0):
            input = take(input, _wrapped_cells(input.shape[axis], left, right, input), axis)
    return input


def _wrapped_cells(size: Any, left: Any, right: Any, like: Tensor) -> Tensor:
    first, last = (width * (width < 0) for width in (left, right))
    before, after = (width * (width > 0) for width in (left, right))
    rest = size + first + last
    return (torch.arange(before + rest + after, device=like.device) - before).remainder(rest) - first


def _each(value: Any, axes: int) -> list[Any]:
    """A value for each axis, of one for all of them or of a sequence."""
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * axes if len(values) == 1 else values
