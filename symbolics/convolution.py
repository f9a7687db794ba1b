"""Convolutions, their transposes, and circular padding.

Convolution whose number of groups varies, as when a batch with kernels of its own is folded into the groups.

ONNX has the number of groups as an attribute. Here each group is a matrix product of its kernels with patches of its
cells; a convolution with constant kernels, a single 1 in each, cuts the patches, and its transpose adds them up.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.arithmetic import varies
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


def convolve_by_group(
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


Sizes = int | tuple[int, ...]


# ONNX has the number of groups as an attribute; both exporters refuse.
@decomposition(
    (torch.conv1d, torch.conv2d, torch.conv3d), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
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

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
    """
    if not groups_vary(input, groups):
        return NotImplemented
    return convolve_by_group(input, weight, bias, stride, padding, dilation, groups)


# TorchScript writes auto_pad, which onnxruntime refuses together with dilation.
@decomposition((torch.conv1d, torch.conv2d, torch.conv3d), needed_on=("torchscript",), exactness=Exactness.ROUNDING)
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

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html
    """
    gaps = dilation if isinstance(dilation, (tuple, list)) else (dilation,)
    if padding != "same" or all(gap == 1 for gap in gaps):
        return NotImplemented
    kernel = [static_size(weight, axis) for axis in range(2, weight.dim())]
    sizes = [size for size in kernel if size is not None]
    if len(sizes) < len(kernel):
        decline(f"the kernel's size must be fixed, got {kernel}")
    return convolve_same(input, weight, bias, sizes, dilation, groups)


# ONNX has the number of groups as an attribute; both exporters refuse.
@decomposition(
    (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
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
    if not groups_vary(input, groups):
        return NotImplemented
    return convolve_transposed_by_group(input, weight, bias, stride, padding, output_padding, groups, dilation)


_FUNCTIONS = {1: nn.functional.conv_transpose1d, 2: nn.functional.conv_transpose2d, 3: nn.functional.conv_transpose3d}


# ConvTranspose has output_padding as an attribute; nn.ConvTranspose2d(...)(x, output_size=...) computes it.
@decomposition(tuple(_FUNCTIONS.values()), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def conv_transpose_to_size(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Convolves (N, C, L), (N, C, H, W) or (N, C, D, H, W), without the batch too.

    Math: output_padding adds cells at the end of an axis and changes none before them; that which output_size asks for
          is smaller than the stride, so the result with the largest one begins with the result wanted.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
    """
    axes = weight.dim() - 2
    wanted = _each(output_padding, axes)
    if not any(map(varies, wanted)):
        return NotImplemented
    most = [step - 1 for step in _each(stride, axes)]
    given = [m if varies(w) else w for w, m in zip(wanted, most, strict=True)]
    x = _FUNCTIONS[axes](input, weight, bias, stride, padding, given, groups, dilation)
    for axis, (w, m) in enumerate(zip(wanted, most, strict=True), x.dim() - axes):
        if varies(w):
            x = x.narrow(axis, 0, x.shape[axis] - (m - w))
    return x


def _each(value: Any, axes: int) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * axes if len(values) == 1 else values


@decomposition(torch.nn.functional.pad, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def circular_pad_of_crop(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Crops and wraps around; stock TorchScript repeats what negative padding takes away.

    Math: negative padding takes elements away before the others are repeated.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
    """
    if mode != "circular" or not any(type(width) is int and width < 0 for width in pad):
        return NotImplemented
    pad_by = torch.nn.functional.pad
    cropped = [width if type(width) is int and width < 0 else 0 for width in pad]
    kept = pad_by(input, cropped)
    return pad_by(kept, [0 if less else width for width, less in zip(pad, cropped, strict=True)], mode="circular")


@symbolic(
    "torchvision::deform_conv2d",
    needed_on=("torchscript", "dynamo"),
    opset=(16, 99),
    exactness=Exactness.ROUNDING,
)
def deform_conv2d(
    op: Ops,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """Convolution that reads beside its grid, by offsets (N, 2 G K, P, Q), into (N, O, P, Q).

    Declines: channels or a kernel whose size varies.

    Math: tap k of the kernel reads cell (p stride - padding + k dilation + offset) by bilinear interpolation, with
          zeros outside; the taps are then an axis that one convolution, with a kernel of their number, sums up.
          GridSample has cell c of n at (2 c + 1) / n - 1.
    Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt
            stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt
            offset_groups, bool use_mask) -> Tensor
    Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.deform_conv2d.html
    """
    kernel, image, moves = op.shape(weight), op.shape(input), op.shape(offset)
    if kernel is None or None in kernel or image is None or image[1] is None:
        decline("the channels and the kernel's size must be fixed")
    height, width = int(kernel[2] or 0), int(kernel[3] or 0)
    taps, channels = height * width, int(image[1] or 0)
    dtype = op.dtype(input)
    by_group = op.Reshape(offset, [-1, 2 * taps, 0, 0])
    rows = [(k // width) * dilation_h - pad_h for k in range(taps)]
    columns = [(k % width) * dilation_w - pad_w for k in range(taps)]
    coordinates = []
    for first, starts, stride, axis in ((1, columns, stride_w, 3), (0, rows, stride_h, 2)):
        move = op.Gather(by_group, [2 * k + first for k in range(taps)], axis=1)
        start = op.constant([[[[float(cell)]] for cell in starts]], dtype)
        count = None if moves is None else moves[axis]
        if count is not None:
            steps = [float(step * stride) for step in range(count)]
            grid = op.constant([[[steps]]] if axis == 3 else [[[[step] for step in steps]]], dtype)
        else:
            limit = op.Squeeze(_size(op, offset, axis), [0])
            zero, one = op.constant(0, torch.int64), op.constant(1, torch.int64)
            steps = op.Mul(op.CastLike(op.Range(zero, limit, one), input), op.constant(float(stride), dtype))
            grid = op.Unsqueeze(steps, [0, 1, 2] if axis == 3 else [0, 1, 3])
        position = op.Add(move, op.Add(start, grid))
        size = op.constant(float(image[axis] or 0), dtype)
        if image[axis] is None:
            size = op.CastLike(_size(op, input, axis), input)
        doubled = op.Add(op.Mul(position, op.constant(2.0, dtype)), op.constant(1.0, dtype))
        coordinate = op.Sub(op.Div(doubled, size), op.constant(1.0, dtype))
        coordinates.append(op.Unsqueeze(coordinate, [-1]))
    places = op.Reshape(op.Concat(*coordinates, axis=-1), [0, 0, -1, 2])
    cells = op.Reshape(input, [-1, channels // offset_groups, 0, 0])
    mode = "linear" if op.opset >= 20 else "bilinear"
    samples = op.GridSample(cells, places, mode=mode, padding_mode="zeros", align_corners=0)
    if use_mask:
        flat = op.Reshape(op.Reshape(mask, [-1, taps, 0, 0]), [0, 1, taps, -1])
        samples = op.Mul(samples, flat)
    columns_of = op.Reshape(samples, [-1, channels, 0, 0])
    summed = op.Conv(columns_of, op.Reshape(weight, [0, 0, -1, 1]), bias, group=groups, kernel_shape=[taps, 1])
    if moves is not None and moves[2] is not None and moves[3] is not None:
        return op.Reshape(summed, [0, 0, moves[2], moves[3]])
    return op.Reshape(summed, op.Concat([0, 0], _size(op, offset, 2), _size(op, offset, 3), axis=0))


def _size(op: Ops, x: Value, axis: int) -> Value:
    return op.Gather(op.Shape(x), op.constant([axis], torch.int64), axis=0)


@symbolic(
    "torchvision::deform_conv2d",
    needed_on=("torchscript", "dynamo"),
    opset=(19, 99),
    exactness=Exactness.ROUNDING,
)
def deform_conv2d_19(
    op: Ops,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """One node, as stock dynamo has it; stock TorchScript does not know the operator.

    Declines: a kernel whose size varies.

    Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt
            stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt
            offset_groups, bool use_mask) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html
    """
    kernel = op.shape(weight)
    if kernel is None or None in kernel:
        decline("the kernel's size must be fixed")
    return op.DeformConv(
        input,
        weight,
        offset,
        bias,
        mask if use_mask else None,
        dilations=[dilation_h, dilation_w],
        group=groups,
        kernel_shape=list(kernel[2:]),
        offset_group=offset_groups,
        pads=[pad_h, pad_w, pad_h, pad_w],
        strides=[stride_h, stride_w],
    )
